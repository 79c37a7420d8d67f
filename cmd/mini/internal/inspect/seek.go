package inspect

// spot is a line of a trajectory: a page, a section of it and a line there.
type spot struct{ page, section, line int }

// find is the next match from a spot on, or back; it goes through all pages once,
// round their ends.
func (t *Trajectory) find(m *matcher, from spot, by int) (spot, bool) {
	at := from
	for range len(t.Pages) + 1 {
		p := t.Pages[at.page]
		for at.section >= 0 && at.section < len(p.Sections) {
			s := p.Sections[at.section]
			if line, ok := s.find(m, at.line, by); ok {
				return spot{at.page, at.section, line}, true
			}
			at.section += by
			at.line = 0
			if by < 0 && at.section >= 0 {
				at.line = len(p.Sections[at.section].spans()) - 1
			}
		}
		at.page = (at.page + by + len(t.Pages)) % len(t.Pages)
		at.section, at.line = 0, 0
		if n := len(t.Pages[at.page].Sections); by < 0 && n > 0 {
			at.section, at.line = n-1, len(t.Pages[at.page].Sections[n-1].spans())-1
		}
	}
	return from, false
}

func (s *Section) find(m *matcher, from, by int) (int, bool) {
	spans := s.spans()
	if at, _ := m.find(s.Text); at < 0 {
		return 0, false
	}
	for i := from; i >= 0 && i < len(spans); i += by {
		if at, _ := m.find(s.Text[spans[i].start:spans[i].end]); at >= 0 {
			return i, true
		}
	}
	return 0, false
}

// failed is the next page with something that went wrong, or -1.
func (t *Trajectory) failed(from, by int) int {
	for i := from + by; i >= 0 && i < len(t.Pages); i += by {
		if t.Pages[i].Failed {
			return i
		}
	}
	return -1
}
