//! Commands that answers print: each runs as it stands for the one who reads it.

use crate::envelope::Command;
use crate::{AgentId, RefName, Resource, refname};

/// What printed commands are built on.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The mainline's short name.
    pub mainline: String,
    /// The agent that commands must name by option, because the push that is answered did so.
    pub agent: Option<AgentId>,
}

impl Prompt {
    /// `git push [-o zit.agent=<id>] [-o <option>]… origin <refspec>`.
    #[must_use]
    pub fn push(&self, options: &[&str], refspec: &str, why: &str) -> Command {
        let agent = self.agent.as_ref().map(|agent| format!("zit.agent={agent}"));
        let mut words = vec!["push"];
        for option in agent.iter().map(String::as_str).chain(options.iter().copied()) {
            words.extend(["-o", option]);
        }
        words.extend(["origin", refspec]);
        Command::git(words, why)
    }

    /// The refspec of a request whose value does not matter: it uploads nothing.
    #[must_use]
    pub fn request(&self, request: &str) -> String {
        format!("origin/{}:{request}", self.mainline)
    }

    /// Asks for a claim: by its request ref, or by option where the resource is too long for a refname.
    #[must_use]
    pub fn claim(&self, resource: &Resource, why: &str) -> Command {
        let name = format!("refs/zit/claim/{}", resource.encode());
        if name.len() <= refname::MAX_REFNAME {
            return self.push(&[], &self.request(&name), why);
        }
        let option = format!("zit.claim={resource}");
        self.push(&[&option], &self.request("refs/zit/tell"), why)
    }

    /// `git fetch origin <ref>`, which leaves it as `FETCH_HEAD`.
    #[must_use]
    pub fn fetch(&self, name: &RefName, why: &str) -> Command {
        Command::git(["fetch", "origin", &name.to_string()], why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(agent: Option<&str>) -> Prompt {
        let agent = agent.map(|id| AgentId::new(id).unwrap());
        Prompt { mainline: "main".into(), agent }
    }

    #[test]
    fn a_command_names_the_agent_only_where_the_push_did() {
        let resource: Resource = "src/a.rs#x".parse().unwrap();
        assert_eq!(
            prompt(None).claim(&resource, "").as_str(),
            "git push origin origin/main:refs/zit/claim/src/a.rs#x"
        );
        assert_eq!(
            prompt(Some("ada")).claim(&resource, "").as_str(),
            "git push -o zit.agent=ada origin origin/main:refs/zit/claim/src/a.rs#x"
        );
    }

    #[test]
    fn a_resource_too_long_for_a_refname_is_claimed_by_option() {
        let resource: Resource = format!("a#{}", "x".repeat(2000)).parse().unwrap();
        let command = prompt(None).claim(&resource, "");
        assert!(
            command.as_str().starts_with("git push -o 'zit.claim=a#x")
                || command.as_str().starts_with("git push -o zit.claim=a#x")
        );
        assert!(command.as_str().ends_with(" origin origin/main:refs/zit/tell"));
    }
}
