//! Submitted jobs played in virtual time: their way through the stages, the run that comes out of it, and what must hold
//! for all plugins there could be.

mod world;

mod commands;
mod hand_over;
mod properties;
mod walk;
