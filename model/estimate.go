package model

const (
	// tokensPerMessage are those around each message that name its role.
	tokensPerMessage = 4
	// tokensPerImage is what a picture of about a thousand pixels a side comes to;
	// the providers' rules differ by a factor of two.
	tokensPerImage = 1000
)

// EstimateTokens returns about how many tokens messages have, before a provider
// has counted them.
func EstimateTokens(messages []Message) int64 {
	var n int64
	for _, m := range messages {
		n += tokensPerMessage + EstimateText(m.Content) + tokensPerImage*int64(len(m.Images))
		for _, call := range m.Calls {
			n += tokensPerMessage + EstimateText(call.Name) + EstimateText(call.Arguments)
		}
	}
	return n
}

// EstimateText returns about how many tokens a text has. Source code and English
// have 3.5 bytes a token with most vocabularies.
func EstimateText(text string) int64 { return (int64(len(text))*2 + 6) / 7 }
