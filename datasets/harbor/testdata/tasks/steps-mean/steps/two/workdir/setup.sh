touch two-ready
