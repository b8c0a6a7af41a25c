"""The contract of ../README.md with dulwich."""

import io
import sys
from pathlib import Path

from dulwich import porcelain
from dulwich.repo import Repo


def work(folder, url, name, rounds):
    porcelain.clone(url, folder, errstream=io.BytesIO())

    def push(refspec, options=()):
        said = io.BytesIO()
        result = porcelain.push(folder, "origin", [refspec], push_options=list(options) or None,
                                outstream=said, errstream=said)
        refused = {ref: why for ref, why in (result.ref_status or {}).items() if why}
        if refused:
            raise SystemExit(f"refused: {refused} {said.getvalue()}")

    for n in range(1, int(rounds) + 1):
        commit(folder, name, n)
        push(f"refs/heads/main:refs/heads/{name}")
        porcelain.fetch(folder, "origin", errstream=io.BytesIO())
    push(f"refs/heads/main:refs/heads/{name}-gone")
    push(f":refs/heads/{name}-gone")
    porcelain.tag_create(folder, name)
    push("refs/heads/main:refs/for/main")
    push(f"refs/tags/{name}:refs/tags/{name}", [f"zit.claim={name}/claimed.txt"])


def commit(folder, name, n):
    path = Path(folder, name, f"{n}.txt")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{n}\n")
    porcelain.add(folder, [str(path)])
    who = b"Ada Example <ada@example.com>"
    porcelain.commit(folder, message=f"{name} {n}\n".encode(), author=who, committer=who)


def refs(folder):
    porcelain.fetch(folder, "origin", prune=True, include_tags=True, errstream=io.BytesIO())
    for refname, oid in Repo(folder).get_refs().items():
        if refname.startswith((b"refs/remotes/origin/", b"refs/tags/")) and not refname.endswith(b"/HEAD"):
            print(oid.decode(), refname.decode().replace("refs/remotes/origin/", "refs/heads/"))


if __name__ == "__main__":
    {"work": work, "refs": refs}[sys.argv[1]](*sys.argv[2:])
