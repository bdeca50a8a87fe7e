"""The detector: screens, records and the passing of time in, signals out, by an adapter's rules."""
