package agent_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
)

// pngImage returns a PNG image with the given width and a height of 1.
func pngImage(t *testing.T, width int) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))))
	return b.Bytes()
}

// writeFileCommand returns a command that writes data to a file.
func writeFileCommand(file string, data []byte) string {
	return "echo " + base64.StdEncoding.EncodeToString(data) + " | base64 -d > " + file
}

func TestOutputImages(t *testing.T) {
	small := pngImage(t, 3)
	show := writeFileCommand("a.png", small) + "; printf 'IMG: a.png\\nIMG: none.png\\nIMG:a.txt\\nIMG: a.png\\nIMG: a.png\\n'"
	const output = "[0] IMG: a.png\nIMG: none.png\nIMG:a.txt\nIMG: a.png\nIMG: a.png\n"
	for name, tt := range map[string]struct {
		change func(*agent.Config)
		want   string
		images int
	}{
		"shown": {
			func(c *agent.Config) { c.Images = agent.ImagesConfig{Marker: "IMG:", Supported: true} },
			output + "\n[image none.png left out: there is no such file]\n[image a.txt left out: neither PNG, JPEG, GIF nor WebP]\n" +
				"[more images left out: at most 4 are shown at a time]", 2,
		},
		"not taken": {
			func(c *agent.Config) { c.Images = agent.ImagesConfig{Marker: "IMG:"} },
			output + "\n[image left out: this model takes no images]", 0,
		},
		"no marker": {func(c *agent.Config) { c.Images = agent.ImagesConfig{Supported: true} }, output, 0},
	} {
		for _, protocolName := range []string{protocol.Text, protocol.Tools} {
			t.Run(name+", "+protocolName, func(t *testing.T) {
				cfg := config()
				cfg.Protocol = protocolName
				tt.change(&cfg)
				s := replies(bash(show), bash(submit))
				if protocolName == protocol.Tools {
					s = &scriptedModel{replies: []model.Reply{toolReply(show), toolReply(submit)}}
				}
				require.Equal(t, "Submitted", run(t.Context(), t, cfg, s, &testRecorder{}).ExitStatus)
				got := s.prompts[1][3]
				assert.Equal(t, tt.want, got.Content, "got.Content")
				assert.Equal(t, tt.images, len(got.Images), "images")
				for _, img := range got.Images {
					if img.MediaType != "image/png" || !bytes.Equal(img.Data, small) {
						t.Errorf("%s of %d bytes", img.MediaType, len(img.Data))
					}
				}
			})
		}
	}
}

func TestTaskImages(t *testing.T) {
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(pngImage(t, 3))
	row := func(refs ...any) map[string]any {
		return map[string]any{"image_assets": map[string]any{"problem_statement": refs}}
	}
	for name, tt := range map[string]struct {
		row     map[string]any
		taken   bool
		want    string
		images  int
		warning string
	}{
		"none":                {nil, true, "task", 0, ""},
		"shown":               {row(data), true, "task", 1, ""},
		"one, not taken":      {row(data), false, "task\n\n[image left out: this model takes no images]", 0, ""},
		"several, not taken":  {row(data, "b.png"), false, "task\n\n[2 images left out: this model takes no images]", 0, ""},
		"one that is missing": {row("https://h.example/a\n.png"), true, "task\n\n[image https://h.example/a?.png left out: it is not at hand]", 0, "neither a file"},
		"one not fetched": {
			row(data, "https://h.example/a.png"), true, "task\n\n[image https://h.example/a.png left out: it is not at hand]", 1,
			"https://h.example/a.png: not fetched: agent.images.fetch is false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			cfg.Images.Supported = tt.taken
			a, err := agent.New(cfg)
			require.NoError(t, err)
			s := replies(bash(submit))
			repo := agenttest.NewRepository(t)
			out := a.Run(t.Context(), agent.Session{
				Model: s, Environment: repo.Sandbox, Repository: repo, Recorder: &testRecorder{}, Task: agent.Task{Text: "task", Instance: tt.row},
			})
			prompt := s.prompts[0][1]
			if prompt.Content != tt.want || len(prompt.Images) != tt.images {
				t.Errorf("got %q with %d images", prompt.Content, len(prompt.Images))
			}
			if all := strings.Join(out.Warnings, "\n"); (tt.warning == "") != (all == "") || !strings.Contains(all, tt.warning) {
				t.Errorf("warnings %q", all)
			}
		})
	}
}

// The number of images per conversation is limited.
func TestImageLimit(t *testing.T) {
	cfg := config()
	cfg.Images = agent.ImagesConfig{Marker: "IMG:", Supported: true}
	large := "printf 'IMG: a.png\\nIMG: a.png\\n'"
	grow := writeFileCommand("a.png", pngImage(t, 3)) + "; head -c 5000000 /dev/zero >> a.png"
	s := replies(bash(grow), bash(large), bash(large), bash(large), bash(submit))
	require.Equal(t, "Submitted", run(t.Context(), t, cfg, s, &testRecorder{}).ExitStatus)
	last, images := s.prompts[4], 0
	for _, m := range last {
		images += len(m.Images)
	}
	if end := last[len(last)-1].Content; images != 4 || strings.Count(end, "as many as one conversation can hold") != 2 {
		t.Errorf("%d images; the last answer is %q", images, end)
	}
}
