//! The program that git starts for `zit::…` and `zit://…` addresses. Everything is in the library.

fn main() -> std::process::ExitCode {
    zit_helper::main()
}
