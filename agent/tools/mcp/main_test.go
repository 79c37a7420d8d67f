package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// asServer is the environment variable that makes this test binary an MCP server.
const asServer = "MINI_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	switch kind := os.Getenv(asServer); kind {
	case "":
		goleak.VerifyTestMain(m)
	case "good":
		fmt.Fprintln(os.Stderr, "ready")
		if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
	case "refuses":
		fmt.Fprintln(os.Stderr, "no licence for sk-secret")
		os.Exit(3)
	case "mute":
		time.Sleep(time.Hour)
	default:
		rawServer(kind)
	}
}

// newServer returns a server of the SDK.
func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "books\n", Version: "1.2"}, &sdk.ServerOptions{PageSize: 2})
	add := func(name, about, schema string, h sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{Name: name, Description: about, InputSchema: json.RawMessage(schema)}, h)
	}
	text := func(t string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: t}}}
	}
	add("echo", "Says what it was told. And more.\nMuch more.", `{"type":"object","properties":{
		"text":{"type":"string","description":"What to say."},"times":{"type":"integer"},"loud":{"type":"boolean"},
		"tags":{"type":"array","items":{"type":"string"}},"how":{"enum":["fast","slow"]},"odd key":{"type":"number"}},"required":["text"],"additionalProperties":false}`,
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text(string(r.Params.Arguments)), nil
		})
	add("fail", "Fails.", `{"type":"object"}`, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text("no such book")
		r.IsError = true
		return r, nil
	})
	add("show.all", "Shows.", `{"type":"object"}`, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{
			Content: []sdk.Content{
				&sdk.TextContent{Text: "see\n"}, &sdk.ImageContent{Data: make([]byte, 1000), MIMEType: "image/png"},
				&sdk.AudioContent{Data: []byte("x"), MIMEType: "audio/wav"}, &sdk.ResourceLink{Name: "a", URI: "file:///a"},
				&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", Text: "inside", MIMEType: "text/plain"}},
			},
			StructuredContent: map[string]any{"n": 1, "key": "sk-secret"},
		}, nil
	})
	add("structured", "Answers in JSON.", `{"type":"object"}`, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"n": 1}}, nil
	})
	add("wrong", "Answers with an error.", `{"type":"object"}`, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("out of paper, sk-secret")
	})
	add("leak", "Says a secret.", `{"type":"object"}`, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text("the key is sk-secret"), nil
	})
	add("hang", "Hangs.", `{"type":"object"}`, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("die", "Dies.", `{"type":"object"}`, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(7)
		return nil, nil
	})
	add("pid", "Says who it is.", `{"type":"object"}`, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(fmt.Sprint(os.Getpid())), nil
	})
	return s
}

// rawServer is a server without the SDK that violates the protocol.
func rawServer(kind string) {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var q struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal([]byte(line), &q) != nil || q.ID == nil {
			continue
		}
		say := func(result string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", q.ID, result) }
		list := func(name, next string) string {
			return `{"tools":[{"name":"` + name + `","inputSchema":{"type":"object"}}]` + next + `}`
		}
		switch q.Method {
		case "initialize":
			say(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"0"}}`)
		case "ping":
			if kind != "deaf" {
				say("{}")
			}
		case "tools/list":
			switch kind {
			case "endless":
				say(list("t", `,"nextCursor":"again"`))
			case "many":
				say(`{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"t","inputSchema":{"type":"object"}},`, 600), ",") + `]}`)
			case "garbled list":
				say(`{"tools":7}`)
			default:
				say(list("t", ""))
			}
		case "tools/call":
			switch kind {
			case "garbage":
				fmt.Println("Segmentation fault (core dumped)")
			case "other":
				say(`{"content":"x"}`)
			case "flood":
				block := strings.Repeat("x", 1<<20)
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, q.ID)
				for {
					if _, err := fmt.Print(block); err != nil {
						return
					}
				}
			case "chatter":
				for {
					if _, err := fmt.Println(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`); err != nil {
						return
					}
				}
			case "big":
				say(`{"content":[{"type":"text","text":"` + strings.Repeat("y", 2<<20) + `"}]}`)
			case "deaf":
				time.Sleep(time.Hour)
			case "refuse":
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"x is missing"}}`+"\n", q.ID)
			}
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", q.ID)
		}
	}
}
