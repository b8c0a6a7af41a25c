//! The push that is printed to somebody whose options cannot be taken: the same one, mended.
//!
//! Use [`mended`]. It never says what the push would come to: nothing of it has been looked at.

use bstr::ByteSlice;
use zit_model::envelope::Command;
use zit_model::options;
use zit_wire::receive::PushRequest;

/// The most commands of a push that is printed again, and the most bytes that it takes.
const MAX_AGAIN: (usize, usize) = (8, 2000);

/// The push that `request` came from with its options as they were probably meant; `None` where it is too long to be of
/// use, or is no text.
///
/// What was pushed is named by its oid, since only the pusher knows the branch.
pub(crate) fn mended(request: &PushRequest) -> Option<Command> {
    let options = options::mended(&request.options)?;
    let sent = options.iter().flat_map(|option| ["-o", option]);
    let refspecs = request.commands.iter().map(|command| {
        let name = command.name.to_str().ok()?;
        Some(command.new.map_or_else(|| format!(":{name}"), |new| format!("{new}:{name}")))
    });
    let refspecs: Vec<String> = refspecs.collect::<Option<_>>()?;
    let modes = [(request.capabilities.atomic, "--atomic"), (request.cert.is_some(), "--signed")];
    let modes = modes.into_iter().filter_map(|(is_set, mode)| is_set.then_some(mode));
    let words = std::iter::once("push").chain(modes).chain(sent).chain(["origin"]);
    let words = words.chain(refspecs.iter().map(String::as_str));
    let why = if options.len() == request.options.len() {
        "your push, with the option as it was probably meant"
    } else {
        "your push, without what cannot be used"
    };
    let again = Command::git(words, why);
    let (most, longest) = MAX_AGAIN;
    (refspecs.len() <= most && again.as_str().len() <= longest).then_some(again)
}
