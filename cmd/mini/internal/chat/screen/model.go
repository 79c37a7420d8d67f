package screen

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/chat"
)

// model is all that the screen knows. Update does no input or output, but for what
// is remembered: what is to be seen goes to the canvas, what the person wants to the
// controls, which do not wait. The program's own view is empty; see Screen.show.
type model struct {
	feed     *feed
	canvas   *canvas
	controls controls
	suspend  func() // nil where this process cannot be stopped
	pager    func(text string) tea.Cmd
	remember func(text string) // may be nil
	clock    func() time.Time

	width, height int
	now           time.Time
	state         chat.State
	busySince     time.Time
	turn          turn
	asked         *asked
	askedPage     uint64 // the first that shows the question
	input         input

	pending []string // commands of the reply that were not shown yet
	shown   string   // command that is above, and was not run yet
	after   int      // rows that were written after it
	told    []string // texts of the person's that wait to be told
	echo    string   // what the person wrote last, and is above

	above   []string // rows to be written since the last page
	blank   bool     // the last of them is empty, or there is none
	whole   string   // the newest text of which a part was left out
	hint    string   // an answer to the last key
	urgent  bool
	escaped bool // the last key was Esc

	limited string      // the limit that ended the attempt
	ending  atomic.Bool // how the attempt ended was shown

	failure error // why the screen cannot go on
}

func newModel(old []string, remember func(text string)) *model {
	return &model{
		feed: newFeed(), canvas: newCanvas(), input: newInput(old), remember: remember,
		clock: time.Now, blank: true, width: 80, height: 24,
	}
}

// Messages of the screen's own.
type (
	arrived struct{} // something is in the feed
	tick    struct{} // a second has passed
	back    struct { // from a pager
		err error
	}
)

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (same tea.Model, cmd tea.Cmd) {
	defer func() {
		if r := recover(); r != nil { // what Bubble Tea says of it would be painted over
			m.failure = fmt.Errorf("a mistake in the screen: %v\n%s", r, debug.Stack())
			same, cmd = m, tea.Quit
		}
	}()
	m.now = m.clock()
	m.urgent = false
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case arrived:
		m.takeFeed()
	case tea.PasteMsg:
		m.urgent, m.hint = true, ""
		m.input.paste(msg.Content)
	case tea.KeyPressMsg:
		m.urgent, m.hint = true, ""
		cmd = m.key(msg)
	case back:
		if m.urgent = true; msg.err != nil {
			m.hint = "the pager failed: " + msg.err.Error()
		}
	case tick:
	default:
		return m, nil
	}
	m.publish()
	return m, cmd
}

// View implements tea.Model. The painter draws.
func (m *model) View() tea.View { return tea.View{} }

func (m *model) resize(w, h int) {
	if w <= 0 || h <= 0 {
		return // a terminal that does not know; see stty
	}
	m.width, m.height = w, h
	m.input.resize(m.columns(), h)
}

// columns is how wide rows may be: what is written into the last column leaves
// terminals in doubt where the cursor is.
func (m *model) columns() int { return max(1, m.width-1) }

// publish leaves a page for the painter.
func (m *model) publish() {
	p := m.live()
	p.above, p.width, p.height = m.above, m.width, m.height
	m.above = nil
	n := m.canvas.show(p, m.urgent)
	if m.asked != nil && m.askedPage == 0 {
		m.askedPage = n
	}
}

// takeFeed takes what came since the last time.
func (m *model) takeFeed() {
	items, state := m.feed.take()
	if state != nil {
		m.setState(*state)
	}
	for _, item := range items {
		m.take(item)
	}
}

func (m *model) setState(s chat.State) {
	if s.Busy != m.state.Busy {
		m.busySince = m.now
	}
	m.state = s
}
