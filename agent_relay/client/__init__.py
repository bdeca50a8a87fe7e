"""The library faces use to reach sessions."""
