//! Signed pushes: the nonce that is given, and what hooks are told of a certificate.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use zit_tests::{Git, Run, Server, http, process, wire};

use super::Pair;

/// Writes down, once for each run, what it was told; certificates are shown as they are.
const HOOK: &str = "#!/bin/sh
env | grep -E '^GIT_PUSH_CERT' | sort >>TOLD
test -z \"$GIT_PUSH_CERT\" || git cat-file blob \"$GIT_PUSH_CERT\" | sed -n '1,2p;5,6p' >>TOLD
";

impl Pair {
    /// Both ask for certificates and write down what `pre-receive` and `post-receive` are told.
    fn signing() -> Self {
        let pair = Self::new();
        pair.set("receive.certNonceSeed", "a secret");
        pair.set("receive.certNonceSlop", "600");
        for repository in [&pair.ours, &pair.theirs] {
            for hook in ["pre-receive", "post-receive"] {
                let file = repository.dir().join("hooks").join(hook);
                let told = repository.dir().join("told");
                fs::create_dir_all(file.parent().expect("a file is in a folder"))
                    .expect("writable");
                let text = HOOK.replace("TOLD", told.to_str().expect("a plain name"));
                fs::write(&file, text).expect("a repository is writable");
                fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("writable");
            }
        }
        pair
    }

    /// What the hooks of both were told since the last look, without oids and what differs between two servers.
    #[track_caller]
    fn told(&self) -> String {
        let [ours, theirs] = [&self.ours, &self.theirs].map(|repository| {
            let file = repository.dir().join("told");
            let text = fs::read_to_string(&file).unwrap_or_default();
            let _ = fs::remove_file(file);
            let plain = |line: &str| {
                let of = ["GIT_PUSH_CERT=", "GIT_PUSH_CERT_NONCE=", "pusher ", "nonce "];
                of.iter()
                    .find(|start| line.starts_with(**start))
                    .map_or(line.to_owned(), |s| (*s).to_owned())
            };
            text.lines().map(plain).collect::<Vec<_>>().join("\n")
        });
        assert_eq!(ours, theirs);
        ours
    }

    /// Pushes `refs/heads/forged` with a certificate of an option `a`, and the option `option`.
    fn forge(&self, option: &str, signature: Option<&str>) -> [String; 2] {
        let tip = self.source.ok(["rev-parse", "HEAD"]);
        let command = format!("{} {tip} refs/heads/forged\n", "0".repeat(40));
        let mut lines = vec![
            "push-cert\0report-status push-options\n",
            "certificate version 0.1\n",
            "pusher a 1 +0000\n",
            "pushee x\n",
            "nonce 1-x\n",
            "push-option a\n",
            "\n",
            &command,
        ];
        lines.extend(signature);
        lines.push("push-cert-end\n");
        let mut body: Vec<u8> =
            lines.into_iter().flat_map(|line| wire::pkt(line.as_bytes())).collect();
        body.extend(b"0000");
        body.extend(wire::pkt(option.as_bytes()));
        body.extend(b"0000");
        body.extend(wire::EMPTY_PACK);
        self.urls().map(|url| {
            let (address, path) =
                url.trim_start_matches("http://").split_once('/').expect("a path");
            http::push(address, path, &body).text()
        })
    }

    /// A folder for keys, which is no other user's to read.
    fn keys(&self) -> PathBuf {
        let folder = self.world.path("keys");
        fs::create_dir(&folder).expect("a world is writable");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("writable");
        folder
    }

    /// A clone that signs with a new key of ssh's, which both repositories know as Ada's.
    fn with_ssh(&self) -> Git {
        let keys = self.keys();
        let key = keys.join("key");
        let shown = key.display();
        let _ =
            self.source.shell(&format!("ssh-keygen -q -t ed25519 -N '' -C ada -f {shown}")).ok();
        let public = fs::read_to_string(keys.join("key.pub")).expect("the key was made");
        let signers = keys.join("signers");
        fs::write(&signers, format!("ada@example.com {public}")).expect("a world is writable");
        self.set("gpg.ssh.allowedSignersFile", signers.to_str().expect("a plain name"));
        self.source.with_config("gpg.format=ssh").with_config(format!("user.signingKey={shown}"))
    }
}

#[test]
fn hooks_are_told_whose_key_has_signed_a_push() {
    let pair = Pair::signing();
    let clone = pair.with_ssh();
    pair.push(&clone, &["--signed", "-o", "x=y", "HEAD:refs/heads/signed"]);
    let told = pair.told();
    assert_eq!(told.matches("GIT_PUSH_CERT_SIGNER=ada@example.com").count(), 2, "{told}");
    assert!(told.contains("GIT_PUSH_CERT_STATUS=G") && told.contains("NONCE_STATUS=OK"), "{told}");
    pair.push(&clone, &["HEAD:refs/heads/unsigned"]);
    assert_eq!(pair.told(), "");
    pair.push(&clone, &["--signed", ":refs/heads/signed"]);
    assert!(pair.told().contains("GIT_PUSH_CERT_STATUS=G"));
    let log = pair.ours.shell("grep -rlc 'ada@example.com' zit/journal");
    assert!(log.is_ok(), "the journal names who signed: {log}");
}

#[test]
fn a_key_that_nobody_knows_is_told_as_git_tells_it() {
    let pair = Pair::signing();
    let clone = pair.with_ssh();
    fs::write(pair.world.path("keys/signers"), "").expect("a world is writable");
    pair.push(&clone, &["--signed", "HEAD:refs/heads/unknown"]);
    let told = pair.told();
    assert!(told.contains("GIT_PUSH_CERT_SIGNER=\n"), "{told}");
    for repository in [&pair.ours, &pair.theirs] {
        repository.ok(["config", "--unset", "gpg.ssh.allowedSignersFile"]);
    }
    pair.push(&clone, &["--signed", "HEAD:refs/heads/nobody"]);
    assert!(pair.told().contains("GIT_PUSH_CERT_STATUS=N"));
}

#[test]
fn a_signature_of_gpgs_is_looked_at_by_gpg() {
    let pair = Pair::signing();
    let home = pair.keys();
    let shown = home.display();
    let make =
        "gpg --batch --quiet --passphrase '' --quick-gen-key 'Ada <ada@example.com>' ed25519 sign";
    let _ = pair.source.shell(&format!("GNUPGHOME={shown} {make}")).ok();
    // The servers have no such variable: a program of the repository's owner says where the keys are.
    let program = home.join("gpg-of-the-repository");
    let text = format!("#!/bin/sh\nGNUPGHOME={shown} exec gpg \"$@\"\n");
    fs::write(&program, text).expect("a world is writable");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("writable");
    let program = program.to_str().expect("a plain name");
    pair.set("gpg.program", program);
    let clone = pair.source.with_config(format!("gpg.program={program}"));
    let clone = clone.with_config("user.signingKey=ada@example.com");
    pair.push(&clone, &["--signed", "HEAD:refs/heads/signed"]);
    let told = pair.told();
    assert!(told.contains("GIT_PUSH_CERT_SIGNER=Ada <ada@example.com>"), "{told}");
    assert!(told.contains("GIT_PUSH_CERT_STATUS=G"), "{told}");
    let _ = pair.source.shell(&format!("GNUPGHOME={shown} gpgconf --kill all")).ok();
}

#[test]
fn a_certificate_with_another_nonce_or_other_options_is_told_apart() {
    let pair = Pair::signing();
    let [ours, theirs] = pair.forge("b", Some("-----BEGIN SSH SIGNATURE-----\nx\n"));
    assert_eq!(ours, theirs);
    assert!(ours.contains("ng refs/heads/forged inconsistent push options"), "{ours}");
    // git asks `pre-receive` all the same.
    for repository in [&pair.ours, &pair.theirs] {
        let _ = fs::remove_file(repository.dir().join("told"));
    }
    let [ours, theirs] = pair.forge("a", Some("-----BEGIN SSH SIGNATURE-----\nx\n"));
    assert_eq!(ours, theirs);
    let told = pair.told();
    assert!(told.contains("NONCE_STATUS=BAD") && told.contains("CERT_STATUS=N"), "{told}");
}

/// git ends without a word to the pusher, and moves nothing.
#[test]
fn a_certificate_without_a_signature_is_told_to_hooks_as_none() {
    let pair = Pair::signing();
    let [ours, theirs] = pair.forge("a", None);
    assert!(ours.contains("ok refs/heads/forged"), "{ours}");
    assert!(!theirs.contains("refs/heads/forged"), "{theirs}");
    assert_eq!(pair.theirs.resolve("refs/heads/forged"), None);
    let told = fs::read_to_string(pair.ours.dir().join("told")).expect("hooks ran");
    assert_eq!(told.matches("GIT_PUSH_CERT_STATUS=N").count(), 2, "{told}");
    assert_eq!(told.matches("GIT_PUSH_CERT_SIGNER=\n").count(), 2, "{told}");
}

#[test]
fn a_program_that_hangs_over_a_signature_leaves_it_unproven() {
    let mut pair = Pair::signing();
    pair.server = Server::start_with(&pair.world, &[], &[("ZIT_SIGNATURE_TIME", "1000")]);
    let clone = pair.with_ssh();
    let program = pair.world.path("hangs");
    // What opens a fifo that nobody writes to waits for ever.
    let text = "#!/bin/sh\nmkfifo hang 2>/dev/null\nread nothing <hang\n";
    fs::write(&program, text).expect("a world is writable");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("writable");
    let program = program.to_str().expect("a plain name");
    let [url, _] = pair.urls();
    let unproven = || {
        let told = pair.ours.dir().join("told");
        let text = fs::read_to_string(&told).expect("hooks ran");
        assert_eq!(text.matches("GIT_PUSH_CERT_STATUS=N").count(), 2, "{text}");
        fs::remove_file(told).expect("writable");
    };
    pair.ours.ok(["config", "gpg.ssh.program", program]);
    clone.ok(["push", "--quiet", "--signed", &url, "HEAD:refs/heads/signed"]);
    unproven();
    pair.ours.ok(["config", "gpg.program", program]);
    let [ours, _] = pair.forge("a", Some("-----BEGIN PGP SIGNATURE-----\nx\n"));
    assert!(ours.contains("ok refs/heads/forged"), "{ours}");
    unproven();
    assert!(pair.server.log().contains("that takes too long"));
    let log = pair.ours.shell("grep -rlc 'ada@example.com' zit/journal");
    assert!(!log.is_ok(), "nobody is proven to have signed: {log}");
}

#[test]
fn whoever_asks_for_no_certificates_gets_none() {
    let pair = Pair::new();
    let clone = pair.with_ssh();
    for url in pair.urls() {
        let run = clone.run(["push", "--signed", &url, "HEAD:refs/heads/signed"]).failed();
        assert!(run.stderr.contains("does not support --signed push"), "{run}");
        clone.ok(["push", "--signed=if-asked", &url, "HEAD:refs/heads/asked"]);
    }
}

#[test]
fn a_push_by_path_is_signed_too() {
    let pair = Pair::signing();
    let clone = pair.with_ssh();
    let path = format!("zit::{}", pair.ours.dir().display());
    let run: Run = clone
        .with_env("PATH", &programs())
        .run(["push", "--signed", &path, "HEAD:refs/heads/signed"])
        .ok();
    let told = fs::read_to_string(pair.ours.dir().join("told")).expect("hooks ran");
    assert!(told.contains("NONCE_STATUS=OK") && told.contains("STATUS=G"), "{run} {told}");
}

#[test]
fn the_nonce_that_a_client_was_given_stays_good_when_a_server_comes_in_between() {
    let pair = Pair::signing();
    let clone = pair.with_ssh();
    let address = format!("zit::{}", pair.ours.dir().display());
    // The hook runs between advertisement and push: the server opens the repository, and another second begins.
    let hook = clone.dir().join(".git/hooks/pre-push");
    fs::create_dir_all(hook.parent().expect("a file is in a folder")).expect("writable");
    let [url, _] = pair.urls();
    let text = format!(
        "#!/bin/sh\nnow=$(date +%s)\ngit ls-remote {url} >&2\nwhile [ $now = $(date +%s) ]; do :; done\n"
    );
    fs::write(&hook, text).expect("writable");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("writable");
    let run = clone
        .with_env("PATH", &programs())
        .run(["push", "--signed", &address, "HEAD:refs/heads/signed"])
        .ok();
    assert!(pair.server.log().contains("conversation held"), "{run}");
    let told = fs::read_to_string(pair.ours.dir().join("told")).expect("hooks ran");
    assert!(told.contains("NONCE_STATUS=OK"), "{run} {told}");
}

/// Where git finds the helper.
fn programs() -> String {
    let folders = [process::product_folder().into_os_string(), process::search_path()];
    folders.map(|folders| folders.into_string().expect("plain names")).join(":")
}
