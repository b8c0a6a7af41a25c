//! What a repository is opened for, and what is none.

use zit_store::{Access, Store, StoreError};

use crate::support::Repo;

#[test]
fn a_repository_has_one_referee_and_any_number_of_readers() {
    let repo = Repo::new();
    let store = repo.referee();
    assert!(matches!(Store::open(&repo.path, Access::Referee), Err(StoreError::InUse(_))));
    let reader = Store::open(&repo.path.join("objects"), Access::ReadOnly).unwrap();
    assert_eq!(reader.git_dir(), store.git_dir());
    assert!(matches!(reader.quarantine(), Err(StoreError::ReadOnly(_))));
    assert!(reader.prepare(&[]).is_err());
    drop(store);
    repo.referee();
}

#[test]
fn only_a_bare_repository_is_refereed_and_only_an_empty_folder_becomes_one() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("work");
    std::fs::create_dir_all(tree.join(".git")).unwrap();
    assert!(matches!(Store::open(&tree, Access::Referee), Err(StoreError::NotBare(_))));
    assert!(matches!(Store::open(&tree, Access::ReadOnly), Err(StoreError::NotARepository(_))));
    assert!(matches!(Store::init(&tree), Err(StoreError::NotEmpty(_))));
    let none = folder.path().join("none");
    assert!(matches!(Store::open(&none, Access::Referee), Err(StoreError::NotARepository(_))));
}
