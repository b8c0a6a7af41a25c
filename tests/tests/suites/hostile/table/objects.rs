//! Packs that are whole and hold objects that git's `fsck` forbids.

use super::super::Target;
use super::pack::{BLOB, COMMIT, Pack, SIGNED, TAG, TREE, commit, hex, id, tree};
use super::{Row, branch, check, push};

/// A push of a commit whose tree is `content`, with `blob` beside it.
fn tree_push(content: &[u8], blob: &[u8]) -> Vec<u8> {
    let commit = commit(id(TREE, content), SIGNED);
    let pack = Pack::new().object(BLOB, blob).object(TREE, content).object(COMMIT, &commit);
    branch(&hex(id(COMMIT, &commit)), &pack.finish())
}

/// A tree with one file.
fn one(name: &str, says: &'static str) -> Row {
    let blob = id(BLOB, b"x");
    push(&format!("a tree with {name:?}"), tree_push(&tree(&[("100644", name, blob)]), b"x"), says)
}

#[test]
fn trees_that_would_be_checked_out_as_something_else_are_refused() {
    let x = id(BLOB, b"x");
    let hooks = id(BLOB, b"[submodule \"a\"]\n\tpath = a\n\turl = --upload-pack=evil\n");
    let modules = b"[submodule \"a\"]\n\tpath = a\n\turl = --upload-pack=evil\n";
    let path = b"[submodule \"../../a\"]\n\tpath = a\n\turl = https://example.com/a\n";
    let file = |name, id| tree(&[("100644", name, id)]);
    let rows = vec![
        one(".git", "hasDotgit"),
        one(".GIT", "hasDotgit"),
        one(".gIt", "hasDotgit"),
        one("git~1", "hasDotgit"),
        one("GIT~1", "hasDotgit"),
        one(".git ", "hasDotgit"),
        one(".git...", "hasDotgit"),
        one(".git::$INDEX_ALLOCATION", "hasDotgit"),
        one(".g\u{200c}it", "hasDotgit"),
        one(".git\\config", "hasDotgit"),
        one(".", "hasDot"),
        one("..", "hasDotdot"),
        one("a/b", "fullPathname"),
        one("", "badTree"),
        push("a null id", tree_push(&tree(&[("100644", "a", [0; 20])]), b"x"), "nullSha1"),
        push(
            "a name twice",
            tree_push(&tree(&[("100644", "a", x), ("100644", "a", x)]), b"x"),
            "duplicateEntries",
        ),
        push(
            "a file and a folder of one name",
            tree_push(
                &tree(&[("100644", "a", x), ("100644", "a.b", x), ("40000", "a", id(TREE, b""))]),
                b"x",
            ),
            "duplicateEntries",
        ),
        push(
            "an unsorted tree",
            tree_push(&tree(&[("100644", "b", x), ("100644", "a", x)]), b"x"),
            "treeNotSorted",
        ),
        push("a tree cut off", tree_push(b"100644 a\0abc", b"x"), "badTree"),
        push("a mode that is no number", tree_push(&tree(&[("ten", "a", x)]), b"x"), "badTree"),
        push(
            ".gitmodules as a link",
            tree_push(&tree(&[("120000", ".gitmodules", x)]), b"x"),
            "gitmodulesSymlink",
        ),
        push(
            "a url that is an option",
            tree_push(&file(".gitmodules", hooks), modules),
            "gitmodulesUrl",
        ),
        push(
            "a submodule that leads out",
            tree_push(&file(".gitmodules", id(BLOB, path)), path),
            "gitmodulesName",
        ),
        push("a file that is a folder", tree_push(&tree(&[("40000", "a", x)]), b"x"), ""),
    ];
    check(&mut Target::new(), rows);
}

/// A push of one raw commit.
fn commit_push(name: &str, content: &[u8], says: &'static str) -> Row {
    let pack = Pack::new().object(TREE, b"").object(COMMIT, content);
    push(name, branch(&hex(id(COMMIT, content)), &pack.finish()), says)
}

#[test]
fn commits_and_tags_that_git_cannot_read_are_refused() {
    let empty = id(TREE, b"");
    let with = |rest: &str| commit(empty, rest);
    let who = "A <a@example.com> 1 +0000";
    let tag = format!("object {}\ntype tree\ntag v1\n\nNo tagger\n", "1".repeat(40));
    let rows = vec![
        commit_push("a commit of nothing", b"tree 12\n", "badTreeSha1"),
        commit_push("a commit without a tree", SIGNED.as_bytes(), "missingTree"),
        commit_push(
            "a commit without an author",
            &with(&format!("committer {who}\n\nx\n")),
            "missingAuthor",
        ),
        commit_push(
            "a commit with two authors",
            &with(&format!("author {who}\nauthor {who}\ncommitter {who}\n\nx\n")),
            "multipleAuthors",
        ),
        commit_push(
            "a commit without a committer",
            &with(&format!("author {who}\n\nx\n")),
            "missingCommitter",
        ),
        commit_push(
            "a commit with a bad parent",
            &with(&format!("parent 12\n{SIGNED}")),
            "badParentSha1",
        ),
        commit_push(
            "a commit with the null parent",
            &with(&format!("parent {}\n{SIGNED}", "0".repeat(40))),
            "",
        ),
        commit_push(
            "a time beyond all time",
            &with(&format!("author A <a@b> 99999999999999999999 +0000\ncommitter {who}\n\nx\n")),
            "badDateOverflow",
        ),
        commit_push(
            "an address that does not end",
            &with(&format!("author A <a@b 1 +0000\ncommitter {who}\n\nx\n")),
            "badEmail",
        ),
        commit_push("a commit of no bytes", b"", "nterminatedHeader"),
        commit_push("a header with a null byte", b"tree \0\n\n", "nulInHeader"),
        push(
            "a tag of nothing",
            super::PushBody::of(
                super::ZERO,
                &hex(id(TAG, tag.as_bytes())),
                "refs/tags/v1",
                &Pack::new().object(TAG, tag.as_bytes()).finish(),
            )
            .encode(),
            "",
        ),
    ];
    check(&mut Target::new(), rows);
}
