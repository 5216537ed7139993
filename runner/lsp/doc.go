// Package lsp serves the navigation ops of a Project from language servers that the Runner's
// machine has: gopls, rust-analyzer, typescript-language-server, pyright. One runs for a Project and
// a language while it is used. What it is told is what lies on the disk at that moment, so an
// answer is the server's current truth, and says what it rests on (STA-13).
//
// A language server may run what a Project brings (build scripts, macros, plug-ins). It is started
// in the sandbox of helpers; where the system has none, the server's side asks for the scope to
// execute (faults.md 4).
package lsp
