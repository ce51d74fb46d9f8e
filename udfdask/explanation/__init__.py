"""What a run will do and cost: its description, its memory, advice. Above plan and graph."""
