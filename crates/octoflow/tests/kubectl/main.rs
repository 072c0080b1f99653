//! The Kubernetes-style face as its users meet it: the real binary, the real kubectl, and requests no good client sends.

mod bad_input;
mod finding;
mod objects;
mod rig;
mod watching;
mod workflows;
