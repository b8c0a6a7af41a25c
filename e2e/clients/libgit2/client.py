"""The contract of ../README.md with libgit2, through pygit2."""

import sys
from pathlib import Path

import pygit2


class Answers(pygit2.RemoteCallbacks):
    """Fails on a refused ref: libgit2 reports one by this call only."""

    def push_update_reference(self, refname, message):
        if message is not None:
            raise SystemExit(f"{refname} was refused: {message}")


def work(folder, url, name, rounds):
    repo = pygit2.clone_repository(url, folder)
    origin = repo.remotes["origin"]

    def push(refspec, options=()):
        origin.push([refspec], callbacks=Answers(), push_options=list(options) or None)

    for n in range(1, int(rounds) + 1):
        commit(repo, name, n)
        push(f"+refs/heads/main:refs/heads/{name}")
        origin.fetch()
    push(f"refs/heads/main:refs/heads/{name}-gone")
    push(f":refs/heads/{name}-gone")
    repo.references.create(f"refs/tags/{name}", repo.head.target)
    push("refs/heads/main:refs/for/main")
    push(f"refs/tags/{name}", [f"zit.claim={name}/claimed.txt"])


def commit(repo, name, n):
    path = Path(repo.workdir, name, f"{n}.txt")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{n}\n")
    repo.index.add(f"{name}/{n}.txt")
    repo.index.write()
    author = pygit2.Signature("Ada Example", "ada@example.com")
    tree = repo.index.write_tree()
    repo.create_commit("HEAD", author, author, f"{name} {n}\n", tree, [repo.head.target])


def refs(folder):
    repo = pygit2.Repository(folder)
    repo.remotes["origin"].fetch(["+refs/tags/*:refs/tags/*", "+refs/heads/*:refs/remotes/origin/*"],
                                 prune=pygit2.enums.FetchPrune.PRUNE)
    for refname in repo.references:
        if refname.startswith(("refs/remotes/origin/", "refs/tags/")) and not refname.endswith("/HEAD"):
            oid = repo.references[refname].target
            print(oid, refname.replace("refs/remotes/origin/", "refs/heads/"))


if __name__ == "__main__":
    {"work": work, "refs": refs}[sys.argv[1]](*sys.argv[2:])
