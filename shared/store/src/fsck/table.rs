//! The findings that there are: one row each, with git's name and severity.

use std::fmt;

/// What is done about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// Refuses, and no setting changes that.
    Fatal,
    /// Refuses.
    Error,
    /// Refuses, unless a setting says that it only warns.
    Warn,
    /// Is told and refuses nothing.
    Info,
    /// Is not told.
    Ignore,
}

impl Severity {
    pub(crate) fn parse(word: &[u8]) -> Option<Self> {
        match word {
            b"error" => Some(Self::Error),
            b"warn" => Some(Self::Warn),
            b"ignore" => Some(Self::Ignore),
            _ => None,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fatal | Self::Error => "error",
            Self::Warn | Self::Info => "warn",
            Self::Ignore => "ignore",
        })
    }
}

/// Declares the ids with their rows.
macro_rules! table {
    ($($id:ident $name:literal $severity:ident)*) => {
        /// A kind of finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Id { $($id),* }

        /// Every kind with its name and severity.
        const ROWS: &[(Id, &str, Severity)] = &[$((Id::$id, $name, Severity::$severity)),*];

        impl Id {
            /// The name that messages and settings have.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$id => $name),* }
            }

            pub(crate) fn severity(self) -> Severity {
                match self { $(Self::$id => Severity::$severity),* }
            }
        }
    };
}

table! {
    NulInHeader "nulInHeader" Fatal
    UnterminatedHeader "unterminatedHeader" Fatal
    BadDate "badDate" Error
    BadDateOverflow "badDateOverflow" Error
    BadEmail "badEmail" Error
    BadName "badName" Error
    BadObjectSha1 "badObjectSha1" Error
    BadParentSha1 "badParentSha1" Error
    BadTimezone "badTimezone" Error
    BadTree "badTree" Error
    BadTreeSha1 "badTreeSha1" Error
    BadType "badType" Error
    DuplicateEntries "duplicateEntries" Error
    GitattributesBlob "gitattributesBlob" Error
    GitattributesLarge "gitattributesLarge" Error
    GitattributesLineLength "gitattributesLineLength" Error
    GitattributesMissing "gitattributesMissing" Error
    GitmodulesBlob "gitmodulesBlob" Error
    GitmodulesLarge "gitmodulesLarge" Error
    GitmodulesMissing "gitmodulesMissing" Error
    GitmodulesName "gitmodulesName" Error
    GitmodulesPath "gitmodulesPath" Error
    GitmodulesSymlink "gitmodulesSymlink" Error
    GitmodulesUpdate "gitmodulesUpdate" Error
    GitmodulesUrl "gitmodulesUrl" Error
    MissingAuthor "missingAuthor" Error
    MissingCommitter "missingCommitter" Error
    MissingEmail "missingEmail" Error
    MissingNameBeforeEmail "missingNameBeforeEmail" Error
    MissingObject "missingObject" Error
    MissingSpaceBeforeDate "missingSpaceBeforeDate" Error
    MissingSpaceBeforeEmail "missingSpaceBeforeEmail" Error
    MissingTag "missingTag" Error
    MissingTagEntry "missingTagEntry" Error
    MissingTree "missingTree" Error
    MissingType "missingType" Error
    MissingTypeEntry "missingTypeEntry" Error
    MultipleAuthors "multipleAuthors" Error
    TreeNotSorted "treeNotSorted" Error
    UnknownType "unknownType" Error
    ZeroPaddedDate "zeroPaddedDate" Error
    EmptyName "emptyName" Warn
    FullPathname "fullPathname" Warn
    HasDot "hasDot" Warn
    HasDotdot "hasDotdot" Warn
    HasDotgit "hasDotgit" Warn
    LargePathname "largePathname" Warn
    NulInCommit "nulInCommit" Warn
    NullSha1 "nullSha1" Warn
    ZeroPaddedFilemode "zeroPaddedFilemode" Warn
    BadFilemode "badFilemode" Info
    BadTagName "badTagName" Info
    GitattributesSymlink "gitattributesSymlink" Info
    GitignoreSymlink "gitignoreSymlink" Info
    GitmodulesParse "gitmodulesParse" Info
    MailmapSymlink "mailmapSymlink" Info
    MissingTaggerEntry "missingTaggerEntry" Info
    ExtraHeaderEntry "extraHeaderEntry" Ignore
}

impl Id {
    /// Reads a name as settings have it, in any case.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        let row = ROWS.iter().find(|(_, other, _)| name.eq_ignore_ascii_case(other.as_bytes()));
        row.map(|(id, ..)| *id)
    }
}
