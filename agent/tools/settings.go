package tools

// Settings are the section tools of a configuration.
type Settings struct {
	// Files gives commands read, write and edit.
	Files bool `yaml:"files" json:"files,omitempty"`
	// Recall gives them what a compaction took out of the conversation.
	Recall bool `yaml:"recall" json:"recall,omitempty"`
	// Search is a program on the host, with its arguments, that searches; empty
	// means that there is no search.
	Search []string `yaml:"search" json:"search,omitempty"`
	// Host are programs on the host.
	Host []HostTool `yaml:"host" json:"host,omitempty"`
	// MCP are servers of the Model Context Protocol whose tools can be called.
	MCP []MCPServer `yaml:"mcp" json:"mcp,omitempty"`
	// Allow names the tools that may be called; empty means all there are.
	Allow []string `yaml:"allow" json:"allow,omitempty"`
	// Timeout bounds a call, in seconds, MaxOutput its output, in bytes.
	Timeout   float64 `yaml:"timeout" json:"timeout,omitempty"`
	MaxOutput int     `yaml:"max_output" json:"max_output,omitempty"`
}

// HostTool is a program on the host that commands can have run there: it gets the
// call as JSON on its standard input, and its output is the answer.
type HostTool struct {
	Name    string   `yaml:"name" json:"name"`
	Command []string `yaml:"command" json:"command"`
	Usage   string   `yaml:"usage,omitempty" json:"usage,omitempty"`
	About   string   `yaml:"about,omitempty" json:"about,omitempty"`
	// Env names variables of the host that the program gets beside the plain ones.
	Env       []string `yaml:"env,omitempty" json:"env,omitempty"`
	Timeout   float64  `yaml:"timeout,omitempty" json:"timeout,omitempty"`
	MaxOutput int      `yaml:"max_output,omitempty" json:"max_output,omitempty"`
}

// MCPServer is a server of the Model Context Protocol: a program that speaks it
// on its standard streams, or a URL (streamable HTTP).
type MCPServer struct {
	Name    string   `yaml:"name" json:"name"`
	Command []string `yaml:"command,omitempty" json:"command,omitempty"`
	Env     []string `yaml:"env,omitempty" json:"env,omitempty"`
	URL     string   `yaml:"url,omitempty" json:"url,omitempty"`
	// TokenEnv names a variable whose value goes with each request to URL, as
	// "Bearer VALUE".
	TokenEnv string `yaml:"token_env,omitempty" json:"token_env,omitempty"`
	// Tools are those of the server's that are offered; empty means all.
	Tools   []string `yaml:"tools,omitempty" json:"tools,omitempty"`
	Timeout float64  `yaml:"timeout,omitempty" json:"timeout,omitempty"`
}
