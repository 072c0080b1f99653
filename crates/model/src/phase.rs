//! Phases: enums that say how far something is, each with its word and its arrows. The arrows are written once: the
//! documentation of every phase is made from them, and whoever changes a phase is checked against them.

/// Declares an enum of phases. Each line is `Phase = "word" -> [the phases that can follow]`; a final phase has none.
#[macro_export]
macro_rules! phases {
    (
        $(#[$about:meta])*
        $visible:vis enum $name:ident {
            $($(#[$own:meta])* $phase:ident = $word:literal -> [$($next:ident),*]),* $(,)?
        }
    ) => {
        $(#[$about])*
        $visible enum $name {
            $(
                $(#[$own])*
                ///
                #[doc = $crate::arrows!($($next),*)]
                $phase,
            )*
        }

        impl $name {
            $visible const ALL: &[Self] = &[$(Self::$phase),*];

            $visible const fn word(self) -> &'static str {
                match self {
                    $(Self::$phase => $word),*
                }
            }

            /// The phases that can follow this one.
            $visible fn next(self) -> &'static [Self] {
                match self {
                    $(Self::$phase => &[$(Self::$next),*]),*
                }
            }

            /// The other phase can follow this one, or is the same.
            $visible fn leads_to(self, other: Self) -> bool {
                self == other || self.next().contains(&other)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

/// What the documentation of a phase says of those that follow it.
#[doc(hidden)]
#[macro_export]
macro_rules! arrows {
    () => {
        "→ nothing."
    };
    ($first:ident $(, $next:ident)*) => {
        concat!("→ `", stringify!($first), "`" $(, ", `", stringify!($next), "`")*, ".")
    };
}
