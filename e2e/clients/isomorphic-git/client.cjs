// The contract of ../README.md with isomorphic-git on node. It cannot send push options.

const fs = require("node:fs");
const path = require("node:path");
const git = require("isomorphic-git");
const http = require("isomorphic-git/http/node");

const author = { name: "Ada Example", email: "ada@example.com" };

async function work(dir, url, name, rounds) {
  await git.clone({ fs, http, dir, url });

  // Not the default, which pushes to a ref of the same name as the local one.
  async function push(ref, remoteRef, more = {}) {
    const result = await git.push({ fs, http, dir, ref, remoteRef, ...more });
    if (!result.ok) throw new Error(`${remoteRef} was refused: ${JSON.stringify(result)}`);
  }

  for (let n = 1; n <= Number(rounds); n++) {
    await commit(dir, name, n);
    await push("main", `refs/heads/${name}`);
    await git.fetch({ fs, http, dir });
  }
  await push("main", `refs/heads/${name}-gone`);
  await push("main", `refs/heads/${name}-gone`, { delete: true });
  await push("main", "refs/for/main");
  await git.tag({ fs, dir, ref: name });
  await push(`refs/tags/${name}`, `refs/tags/${name}`);
}

async function commit(dir, name, n) {
  const filepath = `${name}/${n}.txt`;
  fs.mkdirSync(path.join(dir, name), { recursive: true });
  fs.writeFileSync(path.join(dir, filepath), `${n}\n`);
  await git.add({ fs, dir, filepath });
  await git.commit({ fs, dir, author, message: `${name} ${n}\n` });
}

async function refs(dir) {
  await git.fetch({ fs, http, dir, prune: true, tags: true });
  for (const branch of await git.listBranches({ fs, dir, remote: "origin" })) {
    if (branch === "HEAD") continue;
    const oid = await git.resolveRef({ fs, dir, ref: `refs/remotes/origin/${branch}` });
    console.log(oid, `refs/heads/${branch}`);
  }
  for (const tag of await git.listTags({ fs, dir })) {
    console.log(await git.resolveRef({ fs, dir, ref: `refs/tags/${tag}` }), `refs/tags/${tag}`);
  }
}

const [verb, ...args] = process.argv.slice(2);
({ work, refs })[verb](...args).catch((error) => {
  console.error(error);
  process.exit(1);
});
