package cli_test

import (
	"context"
	"fmt"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bookServer is the main function of an MCP server that scripts start as a program.
func bookServer() {
	s := sdk.NewServer(&sdk.Implementation{Name: "books", Version: "1.2"}, nil)
	type find struct {
		Title string `json:"title" jsonschema:"words of the title"`
		Limit int    `json:"limit,omitempty"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "find", Description: "Finds books by their title."}, func(_ context.Context, _ *sdk.CallToolRequest, q find) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "asked for "+q.Title)
		if log := os.Getenv("BOOKS_LOG"); log != "" {
			f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil {
				return nil, nil, err
			}
			defer f.Close()
			fmt.Fprintln(f, "asked once") //nolint:errcheck // a test script reads the file
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("found %s (%d)", q.Title, q.Limit)}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "burn", Description: "Ends the server."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "it burns")
		os.Exit(1)
		return nil, nil, nil
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}
