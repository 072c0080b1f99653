//! Phase enums with their words and allowed transitions. Transitions are declared once: the documentation of every
//! phase is generated from them, and every phase change is checked against them.

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

            /// Returns the phases that can follow this one.
            $visible fn next(self) -> &'static [Self] {
                match self {
                    $(Self::$phase => &[$(Self::$next),*]),*
                }
            }

            /// Reports whether the other phase can follow this one, or is the same.
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

/// The sentence about following phases in the documentation of a phase.
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
