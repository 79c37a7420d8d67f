package model

const (
	// tokensPerMessage is the number of tokens that mark each message or tool call.
	tokensPerMessage = 4
	// tokensPerImage is the cost of an image of about 1000x1000 pixels; the
	// providers' rules differ by a factor of two.
	tokensPerImage = 1000
)

// EstimateTokens returns the approximate number of tokens in messages, for use
// before the provider has counted them.
func EstimateTokens(messages []Message) int64 {
	var n int64
	for _, m := range messages {
		n += tokensPerMessage + EstimateTextTokens(m.Content) + tokensPerImage*int64(len(m.Images))
		for _, call := range m.ToolCalls {
			n += tokensPerMessage + EstimateTextTokens(call.Name) + EstimateTextTokens(call.Arguments)
		}
	}
	return n
}

// EstimateTextTokens returns the approximate number of tokens in text, at 3.5
// bytes per token (source code and English, with most tokenizers).
func EstimateTextTokens(text string) int64 { return (int64(len(text))*2 + 6) / 7 }
