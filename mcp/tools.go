package mcp

// tools is the catalogue, in the order shown. One line a tool.
var tools = []Tool{}
