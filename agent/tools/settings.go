package tools

// Settings is the tools section of a configuration.
type Settings struct {
	// Files enables the tools read, write and edit.
	Files bool `yaml:"files" json:"files,omitempty"`
	// Recall enables the tool recall, which shows earlier steps of the attempt,
	// also those that a compaction removed from the conversation.
	Recall bool `yaml:"recall" json:"recall,omitempty"`
	// Search is a program on the host, with its arguments, that implements the
	// tool search; empty disables it.
	Search []string `yaml:"search" json:"search,omitempty"`
	// Host are programs on the host that commands can call.
	Host []HostTool `yaml:"host" json:"host,omitempty"`
	// MCP are servers of the Model Context Protocol whose tools commands can
	// call.
	MCP []MCPServer `yaml:"mcp" json:"mcp,omitempty"`
	// Allow names the tools that may be called; empty allows all.
	Allow []string `yaml:"allow" json:"allow,omitempty"`
	// Timeout bounds a call, in seconds. MaxOutput bounds its output, in bytes.
	Timeout   float64 `yaml:"timeout" json:"timeout,omitempty" check:"seconds zero" hint:"0 means a minute"`
	MaxOutput int     `yaml:"max_output" json:"max_output,omitempty"`
}

// HostTool is a program on the host that commands can call. It receives the
// call as JSON on standard input; its output is the response.
type HostTool struct {
	Name        string   `yaml:"name" json:"name"`
	Command     []string `yaml:"command" json:"command"`
	Usage       string   `yaml:"usage,omitempty" json:"usage,omitempty"`
	Description string   `yaml:"about,omitempty" json:"about,omitempty"`
	// Env names environment variables of the host to pass to the program, in
	// addition to the default ones.
	Env []string `yaml:"env,omitempty" json:"env,omitempty"`
	// Timeout is in seconds, MaxOutput in bytes; 0 means the value in Settings.
	Timeout   float64 `yaml:"timeout,omitempty" json:"timeout,omitempty" check:"seconds zero" hint:"0 means tools.timeout"`
	MaxOutput int     `yaml:"max_output,omitempty" json:"max_output,omitempty"`
}

// MCPServer is a server of the Model Context Protocol: a program that uses its
// standard streams, or a URL (streamable HTTP).
type MCPServer struct {
	Name    string   `yaml:"name" json:"name"`
	Command []string `yaml:"command,omitempty" json:"command,omitempty"`
	Env     []string `yaml:"env,omitempty" json:"env,omitempty"` // as in HostTool
	URL     string   `yaml:"url,omitempty" json:"url,omitempty"`
	// TokenEnv names an environment variable whose value is sent with each
	// request to URL, as "Bearer VALUE".
	TokenEnv string `yaml:"token_env,omitempty" json:"token_env,omitempty"`
	// Tools are the server's tools to offer; empty means all.
	Tools []string `yaml:"tools,omitempty" json:"tools,omitempty"`
	// Timeout is in seconds; 0 means the value in Settings.
	Timeout float64 `yaml:"timeout,omitempty" json:"timeout,omitempty" check:"seconds zero" hint:"0 means tools.timeout"`
}
