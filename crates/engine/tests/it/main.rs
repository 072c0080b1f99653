//! The engine as a whole, played in virtual time: what it must do, by the numbers of the behaviours it is held to.

mod answer;
mod check;
mod done;
mod play;
mod text;

mod names;
