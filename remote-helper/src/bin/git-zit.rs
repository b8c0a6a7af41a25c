//! The program behind `git zit <verb>`. Everything is in the library.

fn main() -> std::process::ExitCode {
    zit_helper::main()
}
