//! Good inputs, written by the products' own encoders where there are any.

use std::io::Write as _;

use flate2::Compression;
use zit_store::journal::{Draft, Fact, Journal, MemorySlots, Origin, Seq, Slots as _};
use zit_wire::pkt;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const ZERO: &str = "0000000000000000000000000000000000000000";

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Lines as packets; `-` is a delimiter and an empty one a flush.
fn packets(lines: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        match *line {
            "-" => pkt::delim(&mut out),
            "" => pkt::flush(&mut out),
            line => pkt::text(&mut out, line.as_bytes()).expect("a short line"),
        }
    }
    out
}

pub(crate) fn push() -> Vec<Vec<u8>> {
    let capabilities =
        "report-status-v2 side-band-64k quiet atomic push-options object-format=sha1 agent=git/2";
    let first = format!("{ZERO} {A} refs/heads/x\0 {capabilities}");
    let (moved, gone) = (format!("{A} {B} refs/heads/y"), format!("{B} {ZERO} refs/heads/z"));
    vec![
        packets(&[&first, &moved, &gone, "", "zit.claim=a.rs#f", "x=1", ""]),
        packets(&[&format!("shallow {A}"), &first, "", ""]),
        packets(&[&format!("{ZERO} {A} refs/heads/x\0 report-status"), ""]),
        packets(&[""]),
    ]
}

pub(crate) fn answers() -> Vec<Vec<u8>> {
    let (tip, ack) = (format!("{A} refs/heads/x\n"), format!("ACK {A}\n"));
    let (list, acks) =
        (packets(&[&tip, ""]), packets(&["acknowledgments\n", &ack, "ready\n", "-"]));
    let pack = packets(&["packfile\n", "\x01PACK", "\x020002", ""]);
    vec![
        list.clone(),
        [&list, b"0002".as_slice(), &acks, &pack, b"0002"].concat(),
        [&pack, b"0002".as_slice(), &list[..9]].concat(),
        b"0002000200030005".to_vec(),
    ]
}

pub(crate) fn fetch() -> Vec<Vec<u8>> {
    let (want, have) = (format!("want {A}"), format!("have {B}"));
    vec![
        packets(&[
            "command=fetch",
            "object-format=sha1",
            "agent=git/2",
            "-",
            &want,
            &have,
            "thin-pack",
            "ofs-delta",
            "include-tag",
            "done",
            "",
        ]),
        packets(&[
            "command=fetch",
            "-",
            &want,
            &format!("shallow {A}"),
            "deepen 1",
            "filter blob:none",
            "want-ref refs/heads/x",
            "",
        ]),
        packets(&[
            "command=fetch",
            "-",
            "wait-for-done",
            "deepen-since 1",
            "deepen-not x",
            "deepen-relative",
            "packfile-uris https",
            "sideband-all",
            "",
        ]),
    ]
}

pub(crate) fn list() -> Vec<Vec<u8>> {
    vec![
        packets(&[
            "command=ls-refs",
            "agent=git/2",
            "object-format=sha1",
            "-",
            "peel",
            "symrefs",
            "unborn",
            "ref-prefix refs/heads/",
            "ref-prefix HEAD",
            "",
        ]),
        packets(&["command=ls-refs", ""]),
        packets(&["command=object-info", "-", "size", &format!("oid {A}"), ""]),
        packets(&["command=bundle-uri", "-", ""]),
    ]
}

pub(crate) fn packet_lines() -> Vec<Vec<u8>> {
    push()
        .into_iter()
        .chain(fetch())
        .chain(list())
        .chain([b"0004".to_vec(), b"0002".to_vec()])
        .collect()
}

pub(crate) fn refnames() -> Vec<Vec<u8>> {
    texts(&[
        "refs/heads/main",
        "refs/zit/claim/src%2fa.rs",
        "refs/zit/wip/a/0123456789ab",
        "refs/tags/v1.0",
        "HEAD",
        "refs/heads/a.b-c@d",
        "refs/zit/accept/main",
        A,
    ])
}

pub(crate) fn resources() -> Vec<Vec<u8>> {
    texts(&[
        "src/a.rs#f",
        "src/a.rs#Type::method",
        "src/a.rs:fn f",
        "docs/",
        "src%2fa.rs",
        "a b/c#d(e)",
        "zit.toml",
        "src/\u{e4}.rs#\u{f6}",
        "src/**",
        "a.ts#A.b",
    ])
}

pub(crate) fn options() -> Vec<Vec<u8>> {
    texts(&[
        "zit.agent=a\nzit.item=0123456789ab\nzit.intent=do it\nzit.claim=src/a.rs#f\nzit.format=json",
        "zit.require-claim=a\nzit.release=b\nzit.status\nzit.dry-run\nother=1",
    ])
}

pub(crate) fn documents() -> Vec<Vec<u8>> {
    vec![
        br#"{"format":1,"resource":"src/a.rs#f","agent":"alice","item":"0123456789ab","intent":"x","lease_seconds":600,"epoch":7,"granted_at":"2026-01-01T00:00:00Z","contract":null,"requirements":[]}"#.to_vec(),
        format!(r#"{{"format":1,"agent":{{"id":"alice","user":"anyone","intent":null}},"heartbeat":"2026-01-01T00:00:00Z","items":[{{"id":"0123456789ab","intent":"x","name":"refs/heads/x","head":"{A}","status":"active"}}]}}"#).into_bytes(),
        br#"{"format":1,"resource":"a"}"#.to_vec(),
    ]
}

pub(crate) fn settings() -> Vec<Vec<u8>> {
    texts(&[
        "[claims]\nlease = \"10m\"\ninflight = \"refuse\"\nbind = \"advise\"\ninflight_ttl = \"24h\"\n\n[refs]\ntags = \"create-only\"\n",
        "[other]\nx = [1, 2.5, {a = 1979-05-27T07:32:00Z}]\n",
    ])
}

pub(crate) fn messages() -> Vec<Vec<u8>> {
    texts(&[
        "Subject\n\nBody\n\nZit-Read: src/a.rs#f\nZit-Session: abc\nSigned-off-by: A <a@b>\n continued\n",
        "x\n\nKey:value\r\n\n---\nKey: v\n",
    ])
}

pub(crate) fn versions() -> Vec<Vec<u8>> {
    texts(&["version=2", "version=1:key=value", "version=0"])
}

/// What stands between the objects of an input of the target `objects`.
pub(crate) const BORDER: &[u8] = b"\xfe\xfd\xfe\xfd";

/// One pack of two blobs and a delta, with its checksum.
pub(crate) fn packs() -> Vec<Vec<u8>> {
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x03".to_vec();
    let base = entry(&mut pack, b"\x3c", b"hello, hello", Compression::fast());
    entry(&mut pack, b"\x20", b"", Compression::fast());
    let distance = u8::try_from(pack.len() - base).expect("a small pack");
    entry(&mut pack, &[0x64, distance], b"\x0c\x01\x01x", Compression::fast());
    vec![signed(pack), signed(b"PACK\0\0\0\x02\0\0\0\0".to_vec())]
}

/// A pack of objects, each with its kind as a number.
pub(crate) fn pack_of(objects: &[(u8, &[u8])]) -> Vec<u8> {
    pack_with(objects, Compression::fast())
}

/// The same without compression.
pub(crate) fn pack_of_stored(objects: &[(u8, &[u8])]) -> Vec<u8> {
    pack_with(objects, Compression::none())
}

fn pack_with(objects: &[(u8, &[u8])], compression: Compression) -> Vec<u8> {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    let n_objects = u32::try_from(objects.len()).expect("few objects");
    pack.extend_from_slice(&n_objects.to_be_bytes());
    for (kind, content) in objects {
        let low = |size: usize, mask| u8::try_from(size & mask).expect("masked");
        let mut header = vec![kind << 4 | low(content.len(), 0xf)];
        let mut rest = content.len() >> 4;
        while rest > 0 {
            *header.last_mut().expect("it has a first byte") |= 0x80;
            header.push(low(rest, 0x7f));
            rest >>= 7;
        }
        entry(&mut pack, &header, content, compression);
    }
    signed(pack)
}

/// Adds an entry; where it begins.
fn entry(pack: &mut Vec<u8>, header: &[u8], content: &[u8], compression: Compression) -> usize {
    let at = pack.len();
    pack.extend_from_slice(header);
    let mut encoder = flate2::write::ZlibEncoder::new(pack, compression);
    encoder.write_all(content).expect("memory takes what it is given");
    encoder.finish().expect("memory takes what it is given");
    at
}

/// One object of each kind, and all of them in one pack. They name each other, so that nothing is missing.
pub(crate) fn objects() -> Vec<Vec<u8>> {
    let blob = b"text\n".to_vec();
    let modules = b"[submodule \"a\"]\n\tpath = a\n\turl = https://h/a\n".to_vec();
    let mut tree = Vec::new();
    for (entry, data) in [("100644 .gitmodules", &modules), ("100644 a.rs", &blob)] {
        tree.extend_from_slice(entry.as_bytes());
        tree.push(0);
        tree.extend_from_slice(object_id("blob", data).as_bytes());
    }
    let who = "A U Thor <a@b.c> 1700000000 +0100";
    let commit = format!(
        "tree {}\nauthor {who}\ncommitter {who}\nencoding UTF-8\n\nSubject\n",
        object_id("tree", &tree)
    )
    .into_bytes();
    let commit_id = object_id("commit", &commit);
    let tag = format!("object {commit_id}\ntype commit\ntag v1\ntagger {who}\n\nText\n");
    let pieces = [(0, commit), (1, tree), (2, blob), (2, modules), (3, tag.into_bytes())];
    let piece = |(kind, data): &(u8, Vec<u8>)| [&[*kind][..], data, BORDER].concat();
    let whole = pieces.iter().flat_map(piece).collect();
    pieces.iter().map(piece).chain([whole]).collect()
}

fn object_id(kind: &str, data: &[u8]) -> gix_hash::ObjectId {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(format!("{kind} {}\0", data.len()).as_bytes());
    hasher.update(data);
    hasher.try_finalize().expect("the seeds are no attack")
}

/// With the checksum that its bytes have.
pub(crate) fn signed(mut pack: Vec<u8>) -> Vec<u8> {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(&pack);
    if let Ok(hash) = hasher.try_finalize() {
        pack.extend_from_slice(hash.as_bytes());
    }
    pack
}

/// A batch of two records, and behind a border the checkpoint of it.
pub(crate) fn journals() -> Vec<Vec<u8>> {
    let slots = MemorySlots::default();
    let (journal, _) = Journal::over(Box::new(slots.clone()), [7; 16]).expect("memory is empty");
    let mut draft = Draft::new(1, "anyone", Origin::Push);
    draft.facts = vec![Fact::epoch(3), Fact::renewal("a.rs".into(), "x")];
    journal.append(&[draft.clone(), draft]).expect("memory has room");
    let (tail, _) = journal.tail();
    journal.checkpoint(tail, b"state").expect("memory has room");
    let frame = slots.find(Seq(1)).ok().flatten().expect("it was appended").frame;
    let checkpoint = slots.read_checkpoint(tail).ok().flatten().expect("it was written");
    vec![frame, checkpoint]
}

pub(crate) fn hellos() -> Vec<Vec<u8>> {
    texts(&[
        "zit-pipe 1 git-receive-pack version=1 agent=ada item=0123456789ab",
        "zit-pipe 1 git-upload-pack version=2",
    ])
}

pub(crate) fn advertisements() -> Vec<Vec<u8>> {
    vec![
        packets(&["version 1", &format!("{A} refs/heads/x\0 report-status agent=git/2"), ""]),
        packets(&[&format!("{ZERO} capabilities^{{}}\0 report-status"), ""]),
        packets(&["ERR no"]),
    ]
}

pub(crate) fn addresses() -> Vec<Vec<u8>> {
    texts(&[
        "zit://u:p@h.example:8080/a/b.git",
        "https://[::1]:1/a%20b",
        "ssh://git@h:22/~/a.git",
        "ssh://[fe80::1]/a",
        "file:///a%25b",
        "/a/b.git",
        "http://127.0.0.1/",
    ])
}

pub(crate) fn overheard() -> Vec<Vec<u8>> {
    texts(&[
        "ok: fine\nOptions:\n- git push --force\n",
        "  refused: a\r{\"outcome\":1}\n\u{200b}[act] n-1\n",
        "Counting: 1%\rCounting: 100%\u{1b}[K\nnothing_to_do",
    ])
}

pub(crate) fn configs() -> Vec<Vec<u8>> {
    texts(&[
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[zit]\n\tmainline = main\n[gc]\n\tauto = 6700\n",
        "[core]\n\trepositoryformatversion = 1\n\tbare\n\tsharedRepository = group\n[extensions]\n\tobjectFormat = sha1\n\tworktreeConfig = true\n",
        "[include]\n\tpath = config\n[includeIf \"onbranch:ma*\"]\n\tpath = ~/more\n[receive \"fsck\"]\n\tmissingEmail = ignore\n\tskipList = x\n",
        "[transfer]\n\thideRefs = !refs/a\n\thideRefs = ^refs/b\n[receive]\n\tunpackLimit = 1k\n\tdenyDeletes = true\n[uploadpack]\n\tallowFilter\n[hook \"a\"]\n\tevent = pre-receive\n\tcommand = true ; # x\n",
    ])
}

pub(crate) fn packed_refs() -> Vec<Vec<u8>> {
    texts(&[
        &format!(
            "# pack-refs with: peeled fully-peeled sorted \n{A} refs/heads/main\n{B} refs/tags/v1\n^{A}\n"
        ),
        &format!("{B} refs/zit/current\n"),
    ])
}

pub(crate) fn ref_files() -> Vec<Vec<u8>> {
    texts(&[&format!("{A}\n"), "ref: refs/heads/main\n", "ref: refs/heads/.invalid\n"])
}

pub(crate) fn marks() -> Vec<Vec<u8>> {
    let boot = zit_store::boot_id().unwrap_or_default();
    texts(&[&format!("{boot} 12 3 4\n"), "b 1 2 3\n"])
}

pub(crate) fn sources(path: &str) -> Vec<Vec<u8>> {
    texts(match path {
        "a.rs" => &[
            "use a::{b, c};\n/// Doc.\n#[derive(Debug)]\npub struct S<T> { pub a: T }\nimpl<T: X> S<T> {\n    pub fn f(&self) -> u8 { g!(1) }\n}\nmod m { fn n() {} }\nconst K: &str = r#\"x\"#;\nmacro_rules! g { ($a:expr) => { $a } }\n",
        ],
        "a.go" => &[
            "package a\n\nimport \"fmt\"\n\n// Doc.\ntype T struct{ A int }\n\nfunc (t *T) F(x int) error {\n\tfmt.Println(x)\n\treturn nil\n}\nvar (\n\tV = 1\n)\n",
        ],
        "a.py" => &[
            "import os\n\nclass A(B):\n    \"\"\"Doc.\"\"\"\n    x: int = 1\n\n    @property\n    def f(self, *a, **k):\n        return lambda y: y\n\nasync def g():\n    pass\n",
        ],
        "a.ts" => &[
            "import { a } from './b';\nexport class A<T> extends B implements C {\n  private x = 1;\n  @dec() f(y?: T): void {}\n}\nexport const g = async () => `x${a}`;\ninterface I { a: string }\n",
        ],
        "a.tsx" => &[
            "import * as R from 'r';\nexport default function App<P>({ a }: P) {\n  return <A.B a={a} {...a}>text {a}<></></A.B>;\n}\nconst x = <T,>(a: T) => a;\n",
        ],
        "a.js" => &[
            "const a = require('./a');\nclass A { #b = 1; get c() { return `${this.#b}` } }\nmodule.exports = { A, d: () => <p/> };\nexport * from './e';\n",
        ],
        "a.ini" => &["; x\nroot = true\n[a]\nb = 1\n  c\n[d \"e\"]\nf: g\n"],
        "go.mod" => &[
            "module a.b/c\n\ngo 1.22\n\nrequire (\n\ta.b/d v1.0.0 // indirect\n)\nreplace a.b/d => ../d\nexclude a.b/e v1\n",
        ],
        "a.md" => &[
            "# Title\n\nText [a](b).\n\n## Part\n\n- one\n  - two\n\n```rust\nfn f() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        ],
        "a.toml" => &[
            "# x\n[package]\nname = 'a'\n[dependencies]\none = { version = \"1\" }\n[[bin]]\nname = \"b\"\n",
        ],
        "a.json" => &["{\"a\": 1, \"dependencies\": {\"b\": \"1\", \"c\": [1, {}]}}\n"],
        "a.yml" => &[
            "# x\non: [push]\njobs:\n  build:\n    steps:\n      - run: |\n          make\n  test: {}\n",
        ],
        _ => &["some text\n"],
    })
}
