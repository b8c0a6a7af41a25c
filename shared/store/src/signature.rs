//! Whether a signature holds, asked of the program that the repository's configuration names for its kind.
//!
//! [`Store::check_signature`] chooses `gpg`, `gpgsm` or `ssh-keygen` by how the signature begins, as git does, runs it in
//! the git directory with the server's own environment, and reads what it says. A signature of ssh's takes several programs,
//! which have one time together; the one that is at work when it is up is killed, and no other is started.
//!
//! # Source
//! git's `gpg-interface.c`, `check_signature`; git-config(1), `gpg.*`; ssh-keygen(1), `-Y`.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bstr::{BString, ByteSlice as _};
use zit_model::quote;

use crate::crash;
use crate::error::{Doing, StoreError};
use crate::hooks::home;
use crate::program::{Audience, Gone, Heard, Input, Limits, ProgramEnd, run};
use crate::store::Store;

/// How long all programs may take together that look at one signature, in milliseconds.
const TIME: u64 = 60_000;

/// How much of what a program says is read, in bytes.
const MAX_SAID: usize = 64 * 1024;

/// How many principals of one key are tried.
const MAX_PRINCIPALS: usize = 16;

/// What is said of programs that know signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignatureConfig {
    openpgp: BString,
    x509: BString,
    ssh: BString,
    allowed_signers: Option<BString>,
    revocations: Option<BString>,
}

impl SignatureConfig {
    pub(crate) fn read(file: &gix_config::File) -> Self {
        let text = |key: &str| file.string(key);
        Self {
            openpgp: text("gpg.openpgp.program")
                .or_else(|| text("gpg.program"))
                .unwrap_or_else(|| "gpg".into()),
            x509: text("gpg.x509.program").unwrap_or_else(|| "gpgsm".into()),
            ssh: text("gpg.ssh.program").unwrap_or_else(|| "ssh-keygen".into()),
            allowed_signers: text("gpg.ssh.allowedSignersFile"),
            revocations: text("gpg.ssh.revocationFile"),
        }
    }
}

/// What became of a look at a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// As the placeholder `%G?` of git-log(1), but that a good signature is `G` whether or not its key is trusted.
    pub result: char,
    /// Who signed, as far as the program knows; may be empty.
    pub signer: String,
    /// The key; may be empty.
    pub key: String,
    /// Whether the signature is good and its signer is known to be who it says.
    pub is_trusted: bool,
}

impl Checked {
    fn nothing() -> Self {
        Self { result: 'N', signer: String::new(), key: String::new(), is_trusted: false }
    }
}

impl Store {
    /// Looks at a signature of `payload`. One that cannot be looked at, not within a minute, or that is none is `N`.
    ///
    /// # Errors
    /// [`StoreError`] when the configuration cannot be read or the signature cannot be put into a file.
    pub fn check_signature(&self, payload: &[u8], signature: &[u8]) -> Result<Checked, StoreError> {
        let config = self.config()?.signatures.clone();
        let folder = std::env::temp_dir();
        let mut file = tempfile::Builder::new()
            .prefix("zit-signature-")
            .tempfile_in(&folder)
            .doing("create a file in", &folder)?;
        file.write_all(signature).doing("write", file.path())?;
        let time = Duration::from_millis(crash::limit("ZIT_SIGNATURE_TIME", TIME));
        let until = Instant::now() + time;
        let (config, git_dir, file) = (&config, self.common_dir(), file.path());
        let look = Look { config, git_dir, file, payload, until };
        let checked = if signature.starts_with(b"-----BEGIN SSH SIGNATURE-----") {
            look.ssh()
        } else if signature.starts_with(b"-----BEGIN PGP ") {
            look.gpg(&config.openpgp, &["--keyid-format=long"])
        } else if signature.starts_with(b"-----BEGIN SIGNED MESSAGE-----") {
            look.gpg(&config.x509, &[])
        } else {
            None
        };
        Ok(checked.unwrap_or_else(Checked::nothing))
    }
}

struct Look<'a> {
    config: &'a SignatureConfig,
    git_dir: &'a Path,
    file: &'a Path,
    payload: &'a [u8],
    /// When the time is up.
    until: Instant,
}

/// What comes of a look; `None` where the time was up before, or no allowed signers are configured.
impl Look<'_> {
    fn gpg(&self, program: &BString, args: &[&str]) -> Option<Checked> {
        let mut args: Vec<OsString> = args.iter().map(OsString::from).collect();
        args.extend(["--status-fd=1", "--verify"].map(OsString::from));
        args.extend([self.file.as_os_str().to_owned(), "-".into()]);
        Some(read_gpg(&self.run(program, &args, self.payload)?.1))
    }

    fn ssh(&self) -> Option<Checked> {
        let allowed = path(self.config.allowed_signers.as_ref()?);
        let word = |text: &str| OsString::from(text);
        let args = [
            word("-Y"),
            word("find-principals"),
            word("-f"),
            allowed.clone().into(),
            word("-s"),
            self.file.into(),
        ];
        let (found, principals) = self.run(&self.config.ssh, &args, b"")?;
        if !found || principals.trim().is_empty() {
            let args = ["-Y", "check-novalidate", "-n", "git", "-s"].map(word);
            let args = [&args[..], &[self.file.into()]].concat();
            return Some(read_ssh(&self.run(&self.config.ssh, &args, self.payload)?.1));
        }
        let mut last = Checked::nothing();
        for principal in principals.lines().take(MAX_PRINCIPALS) {
            let mut args = ["-Y", "verify", "-n", "git", "-f"].map(word).to_vec();
            args.extend([allowed.clone().into(), "-I".into(), OsStr::from_bytes(principal).into()]);
            args.extend(["-s".into(), self.file.into()]);
            if let Some(revoked) = &self.config.revocations {
                args.extend(["-r".into(), path(revoked).into()]);
            }
            let (agrees, said) = self.run(&self.config.ssh, &args, self.payload)?;
            last = read_ssh(&said);
            if agrees && last.result == 'G' {
                break;
            }
            last.is_trusted = false;
        }
        Some(last)
    }

    /// Whether a program succeeded, and what it said; `None` once the time is up.
    fn run(&self, program: &BString, args: &[OsString], input: &[u8]) -> Option<(bool, Vec<u8>)> {
        let time = self.until.saturating_duration_since(Instant::now());
        if time.is_zero() {
            return None;
        }
        let mut said = Said(Vec::new());
        let mut command = |words: &[&OsStr]| {
            let (first, rest) = words.split_first().expect("a program has a name");
            #[expect(clippy::disallowed_methods, reason = "the configuration names the program")]
            let mut command = Command::new(first);
            for (variable, _) in std::env::vars_os() {
                if variable.as_encoded_bytes().starts_with(b"GIT_") {
                    command.env_remove(variable);
                }
            }
            command.args(rest).args(args).current_dir(self.git_dir).env("LC_ALL", "C");
            command
        };
        // What is written to standard error, a signer's name among it, is no answer.
        let limits = Limits { time, beat: None, heard: Heard::Output };
        let ended = run(&mut command, &path(program), Input::Text(input), limits, &mut said);
        tracing::debug!(%program, ?ended, "a signature was looked at");
        match &ended {
            ProgramEnd::TimedOut(_) => {
                tracing::warn!(%program, "a signature is not looked at: that takes too long");
                return None;
            }
            ProgramEnd::Failed(error) => {
                tracing::warn!(%program, %error, "a signature cannot be looked at");
            }
            ProgramEnd::Passed | ProgramEnd::Declined(_) | ProgramEnd::Abandoned => {}
        }
        Some((matches!(ended, ProgramEnd::Passed), said.0))
    }
}

/// A path of the configuration; one that begins with `~/` is in the home folder.
fn path(configured: &BString) -> PathBuf {
    home(configured).unwrap_or_else(|| PathBuf::from(OsStr::from_bytes(configured)))
}

struct Said(Vec<u8>);

impl Audience for Said {
    fn hear(&mut self, words: &[u8]) -> Result<(), Gone> {
        let room = MAX_SAID.saturating_sub(self.0.len()).min(words.len());
        self.0.extend_from_slice(words.get(..room).unwrap_or_default());
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

/// Reads the status lines of gpg. Source: gnupg's `doc/DETAILS`; git's `parse_gpg_output`.
fn read_gpg(said: &[u8]) -> Checked {
    let results = [
        ("GOODSIG", 'G'),
        ("BADSIG", 'B'),
        ("ERRSIG", 'E'),
        ("EXPSIG", 'X'),
        ("EXPKEYSIG", 'Y'),
        ("REVKEYSIG", 'R'),
    ];
    let (mut checked, mut n_results, mut is_doubtful) = (Checked::nothing(), 0, true);
    for line in said.lines().filter_map(|line| line.strip_prefix(b"[GNUPG:] ")) {
        let line = quote::one_line(&line.to_str_lossy());
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        if word.starts_with("TRUST_") {
            is_doubtful = matches!(word, "TRUST_UNDEFINED" | "TRUST_NEVER");
        }
        let Some((_, result)) = results.iter().find(|(name, _)| *name == word) else { continue };
        n_results += 1;
        let (key, signer) = rest.split_once(' ').unwrap_or((rest, ""));
        let signer = if *result == 'E' { "" } else { signer };
        (checked.result, checked.key, checked.signer) =
            (*result, key.to_owned(), signer.to_owned());
    }
    if n_results > 1 {
        return Checked { result: 'E', ..Checked::nothing() };
    }
    checked.is_trusted = checked.result == 'G' && !is_doubtful;
    checked
}

/// Reads the first line that ssh-keygen says. Source: git's `parse_ssh_output`. A principal may have blanks.
fn read_ssh(said: &[u8]) -> Checked {
    let bad = Checked { result: 'B', ..Checked::nothing() };
    let line = quote::one_line(&said.lines().next().unwrap_or_default().to_str_lossy());
    let (signer, by) = if let Some(rest) = line.strip_prefix("Good \"git\" signature for ") {
        match rest.rsplit_once(" with ") {
            Some((signer, by)) => (signer, by),
            None => return bad,
        }
    } else if let Some(by) = line.strip_prefix("Good \"git\" signature with ") {
        ("", by)
    } else {
        return bad;
    };
    let Some((_, key)) = by.split_once("key ") else { return bad };
    let (signer, key) = (signer.to_owned(), key.to_owned());
    Checked { result: 'G', is_trusted: !signer.is_empty(), signer, key }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn shown(checked: &Checked) -> String {
        let Checked { result, signer, key, is_trusted } = checked;
        format!("{result}|{signer}|{key}|{is_trusted}")
    }

    #[test]
    fn what_a_program_writes_to_standard_error_is_no_answer() {
        let folder = tempfile::tempdir().unwrap();
        let script =
            "#!/bin/sh\necho '[GNUPG:] GOODSIG K Mallory' >&2\necho '[GNUPG:] BADSIG K A'\n";
        let program = program(folder.path(), script);
        let config = SignatureConfig::read(&gix_config::File::default());
        let look = look(&config, folder.path(), Duration::from_mins(1));
        assert_eq!(shown(&look.gpg(&program, &[]).unwrap()), "B|A|K|false");
    }

    #[test]
    fn programs_that_hang_have_one_time_together() {
        let folder = tempfile::tempdir().unwrap();
        // What opens a fifo that nobody writes to waits for ever.
        let script = "#!/bin/sh
echo $2 >>runs
test $2 = find-principals && printf 'a\\nb\\nc\\n' && exit
echo 'Good \"git\" signature for a with ED25519 key SHA256:x'
mkfifo hang 2>/dev/null; read nothing <hang
";
        let ssh = program(folder.path(), script);
        let mut config = SignatureConfig::read(&gix_config::File::default());
        (config.ssh, config.allowed_signers) = (ssh, Some("signers".into()));
        let look = look(&config, folder.path(), Duration::from_secs(4));
        assert_eq!(look.ssh(), None, "not even what it said before counts");
        let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
        assert_eq!(runs, "find-principals\nverify\n");
        assert_eq!(look.ssh(), None);
        let again = std::fs::read_to_string(folder.path().join("runs")).unwrap();
        assert_eq!(again, runs, "nothing is started once the time is up");
    }

    fn program(folder: &Path, script: &str) -> BString {
        let program = folder.join("program");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program.into_os_string().into_vec().into()
    }

    fn look<'a>(config: &'a SignatureConfig, folder: &'a Path, time: Duration) -> Look<'a> {
        Look { config, git_dir: folder, file: folder, payload: b"", until: Instant::now() + time }
    }

    #[test]
    fn what_gpg_says_is_read_as_git_reads_it() {
        for (said, expected) in [
            ("", "N|||false"),
            ("GOODSIG K A <a@b>", "N|||false"),
            ("[GNUPG:] GOODSIG K A <a@b>\n[GNUPG:] TRUST_ULTIMATE 0 pgp\n", "G|A <a@b>|K|true"),
            ("[GNUPG:] GOODSIG K A <a@b>\n[GNUPG:] TRUST_UNDEFINED 0 pgp\n", "G|A <a@b>|K|false"),
            ("gpg: x\n[GNUPG:] BADSIG K A\n", "B|A|K|false"),
            ("[GNUPG:] ERRSIG K 22 8 00 1 9\n", "E||K|false"),
            ("[GNUPG:] GOODSIG K A\n[GNUPG:] GOODSIG L B\n", "E|||false"),
        ] {
            assert_eq!(shown(&read_gpg(said.as_bytes())), expected, "{said:?}");
        }
    }

    #[test]
    fn what_ssh_keygen_says_is_read_as_git_reads_it() {
        for (said, expected) in [
            (
                "Good \"git\" signature for a with b with ED25519 key SHA256:x\n",
                "G|a with b|SHA256:x|true",
            ),
            ("Good \"git\" signature with ED25519 key SHA256:x\n", "G||SHA256:x|false"),
            ("Good \"git\" signature for a with ED25519\n", "B|||false"),
            ("Signature verification failed: incorrect signature\n", "B|||false"),
            ("", "B|||false"),
        ] {
            assert_eq!(shown(&read_ssh(said.as_bytes())), expected, "{said:?}");
        }
    }
}
