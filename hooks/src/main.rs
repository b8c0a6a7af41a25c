//! The program `zit-hook`. Everything is in the library.

fn main() -> std::process::ExitCode {
    zit_hook::main()
}
