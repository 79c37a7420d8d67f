package anthropic_test

const plain = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-2026","content":[{"type":"text","text":"hi"}],
 "stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":2}}`
