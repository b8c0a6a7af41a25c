import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.eclipse.jgit.api.Git;
import org.eclipse.jgit.api.PushCommand;
import org.eclipse.jgit.api.errors.GitAPIException;
import org.eclipse.jgit.lib.PersonIdent;
import org.eclipse.jgit.lib.Ref;
import org.eclipse.jgit.transport.PushResult;
import org.eclipse.jgit.transport.RefSpec;
import org.eclipse.jgit.transport.RemoteRefUpdate;
import org.eclipse.jgit.transport.TagOpt;

/** The contract of ../README.md with JGit, run from source: {@code java -cp <jars> Client.java}. */
public final class Client {
  private static final PersonIdent ADA = new PersonIdent("Ada Example", "ada@example.com");

  private final Git git;

  private Client(Git git) {
    this.git = git;
  }

  public static void main(String[] args) throws Exception {
    File dir = new File(args[1]);
    switch (args[0]) {
      case "work" -> {
        try (Git git = Git.cloneRepository().setURI(args[2]).setDirectory(dir).call()) {
          new Client(git).work(args[3], Integer.parseInt(args[4]));
        }
      }
      case "refs" -> {
        try (Git git = Git.open(dir)) {
          new Client(git).refs();
        }
      }
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  private void work(String name, int rounds) throws Exception {
    for (int n = 1; n <= rounds; n++) {
      commit(name, n);
      push("HEAD:refs/heads/" + name, List.of());
      git.fetch().call();
    }
    push("HEAD:refs/heads/" + name + "-gone", List.of());
    push(":refs/heads/" + name + "-gone", List.of());
    git.tag().setName(name).setAnnotated(false).call();
    push("HEAD:refs/for/main", List.of());
    push("refs/tags/" + name, List.of("zit.claim=" + name + "/claimed.txt"));
  }

  private void commit(String name, int n) throws IOException, GitAPIException {
    Path folder = git.getRepository().getWorkTree().toPath().resolve(name);
    Files.createDirectories(folder);
    Files.writeString(folder.resolve(n + ".txt"), n + "\n");
    git.add().addFilepattern(name).call();
    git.commit().setAuthor(ADA).setCommitter(ADA).setMessage(name + " " + n + "\n").call();
  }

  private void push(String refspec, List<String> options) throws GitAPIException {
    PushCommand push = git.push().setRefSpecs(new RefSpec(refspec));
    if (!options.isEmpty()) {
      push.setPushOptions(new ArrayList<>(options));
    }
    for (PushResult result : push.call()) {
      for (RemoteRefUpdate update : result.getRemoteUpdates()) {
        if (update.getStatus() != RemoteRefUpdate.Status.OK) {
          throw new IllegalStateException(update + " " + result.getMessages());
        }
      }
    }
  }

  private void refs() throws GitAPIException, IOException {
    git.fetch().setRemoveDeletedRefs(true).setTagOpt(TagOpt.FETCH_TAGS).call();
    for (String prefix : List.of("refs/remotes/origin/", "refs/tags/")) {
      for (Ref ref : git.getRepository().getRefDatabase().getRefs(prefix).values()) {
        String name = ref.getName().replace("refs/remotes/origin/", "refs/heads/");
        if (!name.endsWith("/HEAD")) {
          System.out.println(ref.getObjectId().name() + " " + name);
        }
      }
    }
  }
}
