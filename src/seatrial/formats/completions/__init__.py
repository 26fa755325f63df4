"""The chat completions API, which OpenAI and OpenRouter share: a module for each format, and one reader and writer."""
