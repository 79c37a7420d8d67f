package screen

// GuardCommand is the hidden command that runs Guard.
const GuardCommand = "guard-screen"
