//! A temporary folder with everything one test needs, gone when the test ends.
//!
//! ```text
//! <world>/home/.gitconfig   the only configuration that git reads
//! <world>/root/             the repositories that servers serve
//! <world>/...               clones and scratch files, named by the test
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Git;

/// What every git of the suites is configured with.
const GITCONFIG: &str = "\
[user]
\tname = Ada Example
\temail = ada@example.com
[init]
\tdefaultBranch = main
[gc]
\tauto = 0
[maintenance]
\tauto = false
[advice]
\tdetachedHead = false
[protocol \"file\"]
\tallow = always
";

/// The temporary folder of one test.
#[derive(Debug)]
pub struct World {
    folder: TempDir,
}

impl World {
    /// Makes the folder, its `home` and its `root`.
    #[allow(clippy::new_without_default, reason = "making a folder on disk is not a default value")]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("zit-test-")
            .tempdir()
            .expect("the temporary folder is writable");
        let world = Self { folder };
        fs::create_dir(world.home()).expect("a new folder is empty");
        fs::create_dir(world.root()).expect("a new folder is empty");
        fs::write(world.home().join(".gitconfig"), GITCONFIG).expect("home is writable");
        world
    }

    /// The path of `name` in this world.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The home folder of every program.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The folder below which servers look for repositories.
    pub fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// The first git on the `PATH`, run in this world's folder.
    pub fn git(&self) -> Git {
        Git::new(&self.home(), self.folder.path())
    }

    /// Makes a bare repository `name` below the root with stock git, ready to be served by anyone.
    pub fn bare(&self, name: &str) -> Git {
        let path = self.root().join(name);
        self.git().ok(["init", "--quiet", "--bare", text(&path)]);
        let git = self.git().at(&path);
        git.ok(["config", "uploadpack.allowFilter", "true"]);
        git.ok(["config", "http.receivepack", "true"]);
        git.ok(["config", "receive.advertisePushOptions", "true"]);
        git
    }
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have UTF-8 names")
}
