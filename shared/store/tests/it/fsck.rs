//! Object checks: each rule with real git beside it, which says what is refused and with which words.

use zit_model::Oid;
use zit_store::{Kind, PackError};

use crate::quarantine::LIMITS;
use crate::support::Repo;

/// What objects may name: a blob, a tree with that blob, and a commit of it.
struct Ground {
    repo: Repo,
    blob: Oid,
    tree: Oid,
    commit: Oid,
}

impl Ground {
    fn new() -> Self {
        let repo = Repo::new();
        let commit = repo.commit(&[("a", "1")], &[], "base");
        let (blob, tree) = (repo.blob("1"), repo.tree(&[("a", "1")]));
        Self { repo, blob, tree, commit }
    }

    fn entry(&self, mode: &str, name: &[u8]) -> Vec<u8> {
        let is_folder = mode.trim_start_matches('0').starts_with("40");
        let oid = if is_folder { self.tree } else { self.blob };
        [mode.as_bytes(), b" ", name, b"\0", oid.as_bytes()].concat()
    }

    fn trees(&self) -> Vec<(&'static str, Vec<u8>)> {
        let file = |name: &[u8]| self.entry("100644", name);
        let link = |name: &[u8]| self.entry("120000", name);
        let folder = |name: &[u8]| self.entry("40000", name);
        let mut null = b"100644 a\0".to_vec();
        null.extend_from_slice(&[0; 20]);
        let mut cases = vec![
            ("a file", file(b"a")),
            ("no entry", Vec::new()),
            ("an entry that names nothing", null),
            ("a mode of group writers", self.entry("100664", b"a")),
            ("a private mode", self.entry("100600", b"a")),
            ("no mode", self.entry("", b"a")),
            ("a mode of zero", self.entry("0", b"a")),
            ("a mode that is no number", self.entry("10064x", b"a")),
            ("a padded mode", self.entry("040000", b"d")),
            ("a submodule", self.entry("160000", b"s")),
            ("a mode for a folder with bits", self.entry("40755", b"d")),
            ("a name twice", [file(b"a"), file(b"a")].concat()),
            ("the wrong order", [file(b"b"), file(b"a")].concat()),
            ("a folder before a longer file", [folder(b"a"), file(b"a.c")].concat()),
            ("a file before a longer file", [file(b"a"), file(b"a.c")].concat()),
            ("a folder after a longer file", [file(b"a.c"), folder(b"a")].concat()),
            ("a file and a folder", [file(b"a"), folder(b"a")].concat()),
            ("a file, and later a folder", [file(b"a"), file(b"a.c"), folder(b"a")].concat()),
            (
                "a file, and much later a folder",
                [file(b"a"), file(b"a-"), file(b"a-b"), folder(b"a-"), folder(b"a")].concat(),
            ),
            ("a long name", file(&[b'x'; 4096])),
            ("a longer name", file(&[b'x'; 4097])),
            ("an entry cut off", file(b"a")[..20].to_vec()),
            ("an entry without end", b"100644 a".to_vec()),
            ("a link to settings of modules", link(b".gitmodules")),
            ("such a link in capitals", link(b".GITMODULES")),
            ("such a link by short name", link(b"gitmod~1")),
            ("such a link by made-up name", link(b"GI7EBA~1")),
            ("such a link behind a backslash", link(b"x\\.gitmodules")),
            ("such a link to HFS+", link(".git\u{200c}modules".as_bytes())),
            ("a link for attributes", link(b".gitattributes")),
            ("a link for what is ignored", link(b".gitignore")),
            ("a link for names", link(b".mailmap")),
            ("settings of modules that are a folder", folder(b".gitmodules")),
            ("attributes that are a folder", folder(b".gitattributes")),
        ];
        for name in [
            "",
            ".",
            "..",
            "a/b",
            ".git",
            ".GIT",
            ".git ",
            ".git.",
            ".git...",
            "git~1",
            "GIT~1",
            "git~2",
            ".gitx",
            ".git x",
            ".git::$INDEX_ALLOCATION",
            ".git\\x",
            "a\\.git",
            "a\\git~1",
            "a\\b",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".gi\u{301}t",
            "...",
            "git",
            ".git/",
        ] {
            cases.push((name, file(name.as_bytes())));
        }
        cases.push((".git and bytes that are no text", file(b".git\xff")));
        cases
    }

    fn commits(&self) -> Vec<(&'static str, Vec<u8>)> {
        let tree = format!("tree {}\n", self.tree);
        let a = "author A <a@b> 1 +0000\n";
        let c = "committer A <a@b> 1 +0000\n";
        let end = "\nmessage\n";
        let by = |who: &str| format!("{tree}author {who}\n{c}{end}");
        let mut cases = vec![
            ("a commit", format!("{tree}{a}{c}{end}")),
            ("a commit with a parent", format!("{tree}parent {}\n{a}{c}{end}", self.commit)),
            ("nothing", String::new()),
            ("an end of line", "\n".to_owned()),
            ("no tree", format!("{a}{c}{end}")),
            ("a short tree", format!("tree 1234\n{a}{c}{end}")),
            ("a long tree", format!("tree {}0\n{a}{c}{end}", self.tree)),
            ("a tree in capitals", format!("tree {}\n{a}{c}{end}", self.tree).to_uppercase()),
            ("a short parent", format!("{tree}parent 12\n{a}{c}{end}")),
            ("no author", format!("{tree}{c}{end}")),
            ("two authors", format!("{tree}{a}{a}{c}{end}")),
            ("no committer", format!("{tree}{a}{end}")),
            ("a committer without mail", format!("{tree}{a}committer A 1 +0000\n{end}")),
            ("a parent too late", format!("{tree}{a}parent {}\n{c}{end}", self.commit)),
            ("more lines", format!("{tree}{a}{c}encoding x\ngpgsig y\n z\n{end}")),
            ("no message", format!("{tree}{a}{c}")),
            ("a cut header", format!("{tree}{a}{}", c.trim_end())),
            ("NUL in the header", format!("{tree}author A\0 <a@b> 1 +0000\n{c}{end}")),
            ("NUL in the message", format!("{tree}{a}{c}\nmes\0sage\n")),
            ("NUL in another line", format!("{tree}{a}{c}x y\0z\n{end}")),
        ];
        for who in [
            "",
            "A",
            "A 1 +0000",
            "<a@b> 1 +0000",
            " <a@b> 1 +0000",
            "A<a@b> 1 +0000",
            "A> <a@b> 1 +0000",
            "A <a@b 1 +0000",
            "A <a<b> 1 +0000",
            "A <a@b>1 +0000",
            "A <a@b>",
            "A <a@b> ",
            "A <a@b> x +0000",
            "A <a@b>  1 +0000",
            "A <a@b> \t1 +0000",
            "A <a@b> -1 +0000",
            "A <a@b> 0 +0000",
            "A <a@b> 01 +0000",
            "A <a@b> 00 +0000",
            "A <a@b> 9223372036854775807 +0000",
            "A <a@b> 9223372036854775808 +0000",
            "A <a@b> 99999999999999999999999 +0000",
            "A <a@b> 1",
            "A <a@b> 1 ",
            "A <a@b> 1x +0000",
            "A <a@b> 1 0000",
            "A <a@b> 1 +000",
            "A <a@b> 1 +00000",
            "A <a@b> 1 +0000 ",
            "A <a@b> 1 -1234",
            "A <a@b> 1 +9999",
            "A <> 1 +0000",
            "A <a@b> 1  +0000",
            "A <a b> c> 1 +0000",
        ] {
            cases.push((who, by(who)));
        }
        cases.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
    }

    fn tags(&self) -> Vec<(&'static str, Vec<u8>)> {
        let object = format!("object {}\n", self.commit);
        let t = "type commit\n";
        let n = "tag v1\n";
        let by = "tagger A <a@b> 1 +0000\n";
        let cases = [
            ("a tag", format!("{object}{t}{n}{by}\nmessage\n")),
            ("a tag without text", format!("{object}{t}{n}{by}")),
            ("no object", format!("{t}{n}{by}\n")),
            ("a short object", format!("object 12\n{t}{n}{by}\n")),
            ("no type", format!("{object}{n}{by}\n")),
            ("an unknown type", format!("{object}type x\n{n}{by}\n")),
            ("an empty type", format!("{object}type \n{n}{by}\n")),
            ("a cut type", format!("{object}type commit")),
            ("no tag line", format!("{object}{t}{by}\n")),
            ("a cut tag line", format!("{object}{t}tag v1")),
            ("a name that is no refname", format!("{object}{t}tag a..b\n{by}\n")),
            ("an empty name", format!("{object}{t}tag \n{by}\n")),
            ("no tagger", format!("{object}{t}{n}\nmessage\n")),
            ("a tagger without mail", format!("{object}{t}{n}tagger A 1 +0000\n\n")),
            ("a tagger with a bad date", format!("{object}{t}{n}tagger A <a@b> x +0000\n\n")),
            ("one more line", format!("{object}{t}{n}{by}x y\n\nmessage\n")),
            ("NUL in the header", format!("{object}{t}tag v\0\n{by}\n")),
            ("NUL in the message", format!("{object}{t}{n}{by}\nmes\0sage\n")),
            ("nothing", String::new()),
        ];
        cases.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
    }

    /// A pack of the object and of what it may name.
    fn pack(&self, kind: &str, content: &[u8]) -> Vec<u8> {
        let oid = self.repo.git_hash_literally(kind, content);
        let mut oids = vec![oid, self.blob, self.tree, self.commit];
        oids.sort();
        oids.dedup();
        self.repo.pack_of(&oids)
    }

    /// What git's own checks say of an object by itself.
    fn words(&self, kind: &str, content: &[u8]) -> String {
        let output = self.repo.try_git(&["hash-object", "-t", kind, "--stdin"], content);
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

/// Whether git takes the pack; with its complaints.
fn git_takes(pack: &[u8], strict: &str) -> (bool, String) {
    let output = Repo::new().try_git(&["index-pack", "--stdin", strict], pack);
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn zit_takes(repo: &Repo, pack: &[u8]) -> Result<(), PackError> {
    let store = repo.referee();
    store.quarantine().unwrap().receive_pack(&mut &*pack, &LIMITS).map(|_| ())
}

#[track_caller]
fn check(ground: &Ground, here: &Repo, kind: &str, name: &str, content: &[u8]) -> bool {
    let pack = ground.pack(kind, content);
    let (git, said) = git_takes(&pack, "--strict");
    let zit = zit_takes(here, &pack);
    assert_eq!(zit.is_ok(), git, "{kind} {name:?}: zit: {zit:?}, git: {said}");
    if let Err(PackError::BadObject(said)) = zit {
        let words = ground.words(kind, content);
        for line in said.split("; ").filter_map(|line| line.strip_prefix("error: object ")) {
            let (_, what) = line.split_once(": ").unwrap();
            assert!(words.contains(what), "{kind} {name:?}: zit: {what}, git: {words}");
        }
    }
    git
}

fn check_all(
    kind: &str,
    cases: impl FnOnce(&Ground) -> Vec<(&'static str, Vec<u8>)>,
    least: usize,
) {
    let (ground, here) = (Ground::new(), Repo::new());
    let before = here.files();
    let mut refused = 0;
    for (name, content) in cases(&ground) {
        refused += usize::from(!check(&ground, &here, kind, name, &content));
    }
    assert!(refused >= least, "{refused} refused");
    let after = here.files();
    assert!(
        after.iter().all(|file| before.contains(file) || file.ends_with("zit/lock")),
        "{after:?}"
    );
}

#[test]
fn a_tree_is_refused_if_git_refuses_it() {
    check_all("tree", Ground::trees, 30);
}

#[test]
fn a_commit_is_refused_if_git_refuses_it() {
    check_all("commit", Ground::commits, 30);
}

#[test]
fn a_tag_is_refused_if_git_refuses_it() {
    check_all("tag", Ground::tags, 10);
}

#[test]
fn settings_of_modules_are_refused_if_git_refuses_them() {
    let (ground, here) = (Ground::new(), Repo::new());
    for text in [
        "",
        "[submodule \"a\"]\n\tpath = a\n\turl = https://example.org/a.git\n",
        "[submodule \"a\"]\n\tpath = a\n\turl = ../a.git\n\tupdate = rebase\n",
        "[submodule \"a b\"]\n\tpath = a\n\turl = \"x y\"\n",
        "[submodule \"../a\"]\n\tpath = a\n",
        "[submodule \"a/../b\"]\n\tpath = a\n",
        "[submodule \"\"]\n\tpath = a\n",
        "[submodule \"a\"]\n\tpath = -a\n",
        "[submodule \"a\"]\n\turl = -u./x\n",
        "[submodule \"a\"]\n\turl = ./%0ax\n",
        "[submodule \"a\"]\n\turl = ../:x\n",
        "[submodule \"a\"]\n\turl = http::x\n",
        "[submodule \"a\"]\n\tupdate = !rm\n",
        "[submodule \"a\"\n\tupdate",
        "[submodule \"a\"]\n\turl = https:///x\n",
    ] {
        let blob = ground.repo.blob(text);
        let tree = ground.repo.tree_of(&format!("100644 {blob}\t.gitmodules\n"));
        let pack = ground.repo.pack_of(&[blob, tree]);
        let (git, said) = git_takes(&pack, "--strict");
        let zit = zit_takes(&here, &pack);
        assert_eq!(zit.is_ok(), git, "{text:?}: zit: {zit:?}, git: {said}");
    }
}

#[test]
fn attributes_with_a_line_that_git_does_not_read_are_refused() {
    let (ground, here) = (Ground::new(), Repo::new());
    for (n_bytes, taken) in [(2047, true), (2048, false)] {
        let blob = ground.repo.blob(&"x".repeat(n_bytes));
        let tree = ground.repo.tree_of(&format!("100644 {blob}\t.gitattributes\n"));
        let pack = ground.repo.pack_of(&[blob, tree]);
        assert_eq!(git_takes(&pack, "--strict").0, taken, "{n_bytes}");
        assert_eq!(zit_takes(&here, &pack).is_ok(), taken, "{n_bytes}");
    }
}

#[test]
fn a_repository_may_choose_what_it_refuses() {
    let ground = Ground::new();
    let tree = ground.tree;
    let commit = format!("tree {tree}\nauthor A 1 +0000\ncommitter A <a@b> 1 +0000\n\nm\n");
    let commit = ground.pack("commit", commit.as_bytes());
    let dot = ground.pack("tree", &ground.entry("100644", b"."));
    let odd = ground.pack("tree", &ground.entry("100664", b"a"));
    let nul = format!("tree {tree}\0\n");
    let nul = ground.pack("commit", nul.as_bytes());
    for (setting, pack, strict) in [
        ("missingEmail=ignore", &commit, "--strict=missingemail=ignore"),
        ("MISSINGEMAIL=warn", &commit, "--strict=missingemail=warn"),
        ("badEmail=ignore", &commit, "--strict=bademail=ignore"),
        ("hasDot=warn", &dot, "--strict=hasdot=warn"),
        ("hasDot=error", &dot, "--strict=hasdot=error"),
        ("badFilemode=error", &odd, "--strict=badfilemode=error"),
        ("badFilemode=ignore", &odd, "--strict=badfilemode=ignore"),
    ] {
        let here = Repo::new();
        let (key, value) = setting.split_once('=').unwrap();
        here.git(&["config", &format!("receive.fsck.{key}"), value]);
        let (git, said) = git_takes(pack, strict);
        let zit = zit_takes(&here, pack);
        assert_eq!(zit.is_ok(), git, "{setting}: zit: {zit:?}, git: {said}");
    }
    let here = Repo::new();
    here.git(&["config", "receive.fsck.nulInHeader", "ignore"]);
    assert!(zit_takes(&here, &nul).is_err(), "some findings cannot be silenced");
}

#[test]
fn objects_that_a_repository_lists_are_let_through() {
    let ground = Ground::new();
    let content = ground.entry("100644", b".git");
    let oid = ground.repo.git_hash_literally("tree", &content);
    let pack = ground.pack("tree", &content);
    let here = Repo::new();
    assert!(zit_takes(&here, &pack).is_err());
    std::fs::write(here.path.join("known"), format!("# old mistakes\n{oid} # this one\n")).unwrap();
    here.git(&["config", "receive.fsck.skipList", "known"]);
    zit_takes(&here, &pack).unwrap();
}

#[test]
fn objects_are_checked_unless_a_repository_says_otherwise() {
    let ground = Ground::new();
    let pack = ground.pack("tree", &ground.entry("100644", b".git"));
    for (settings, taken) in [
        (&[][..], false),
        (&[("transfer.fsckObjects", "false")], true),
        (&[("transfer.fsckObjects", "false"), ("receive.fsckObjects", "true")], false),
        (&[("transfer.fsckObjects", "true"), ("receive.fsckObjects", "false")], true),
    ] {
        let here = Repo::new();
        here.git(&["config", "--unset", "transfer.fsckObjects"]);
        for (key, value) in settings {
            here.git(&["config", key, value]);
        }
        assert_eq!(zit_takes(&here, &pack).is_ok(), taken, "{settings:?}");
    }
}

#[test]
fn an_object_with_the_id_of_another_is_refused() {
    let (here, there) = (Repo::new(), Repo::new());
    let blob = there.blob("mine");
    // Nobody can make two objects of one id; a file in the wrong place is the same to a receiver.
    let other = here.blob("other").to_string();
    let hex = blob.to_string();
    let objects = here.path.join("objects");
    std::fs::create_dir_all(objects.join(&hex[..2])).unwrap();
    let from = objects.join(&other[..2]).join(&other[2..]);
    std::fs::rename(from, objects.join(&hex[..2]).join(&hex[2..])).unwrap();
    let error = zit_takes(&here, &there.pack_of(&[blob])).unwrap_err();
    assert!(error.to_string().contains("COLLISION"), "{error}");
    assert_eq!(here.referee().objects().unwrap().kind(blob).unwrap(), Some(Kind::Blob));
}
