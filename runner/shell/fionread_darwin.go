package shell

const fionread = 0x4004667f // FIONREAD
