package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/commands/call"
	"webcodex/internal/fault"
)

// guardPanics keeps a panic within its request: the SDK runs handlers on goroutines of its
// own without recover, and one panic would end the process.
func (s *Server) guardPanics(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			s.cfg.Logger.Error("request panicked", "method", method, "stack", string(debug.Stack()))
			if method == "tools/call" {
				res, err = inEra(req, refusal(fault.New(fault.Internal, "the server failed inside; the details are in its log"))), nil
				return
			}
			res, err = nil, &jsonrpc.Error{Code: codeInternal, Message: "the server failed inside; the details are in its log"}
		}()
		return next(ctx, method, req)
	}
}

type exchangeKey struct{}

// exchangeOf is the exchange that admit found; never nil behind it.
func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// callerOf is who was let in with the request.
func callerOf(ctx context.Context) call.Principal { return exchangeOf(ctx).grant.principal }

// admit lets through only what came through the edge and was authorised there.
func (s *Server) admit(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		e := s.exchanges.take(req.GetExtra())
		if e == nil {
			return nil, &jsonrpc.Error{Code: codeInternal, Message: "the request did not come through an authorised connection"}
		}
		return next(context.WithValue(ctx, exchangeKey{}, e), method, req)
	}
}

// callTools is the way of every tools/call: the catalogue, then what an
// extension added. While it runs, the client hears of it.
func (s *Server) callTools(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		c, ok := req.(*sdk.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		e := exchangeOf(ctx)
		tool, known := find(s.cfg.Tools, c.Params.Name)
		if !known && s.cfg.Extend.Server == nil {
			return nil, unknownTool()
		}
		r := newReporter(ctx, c)
		// It starts only here, after the SDK has set up the response.
		defer r.speak(s.pace(r), e.w)()
		if !known {
			res, err := next(ctx, method, req)
			return res, nameUnknown(err)
		}
		return inEra(req, s.run(ctx, tool, c)), nil
	}
}

// run normalises the arguments and calls the kernel. Whatever goes wrong is a result with
// isError: a protocol error after a notification would leave modern clients waiting.
func (s *Server) run(ctx context.Context, tool Tool, c *sdk.CallToolRequest) *sdk.CallToolResult {
	e := exchangeOf(ctx)
	args, around, err := s.outer(e.modern, c.Params.Arguments)
	if err != nil {
		return refusal(err)
	}
	if args, err = tool.Input.Normalise(args); err != nil {
		return refusal(err)
	}
	if tool.Spec.Name == callRuntimeTool.Spec.Name {
		if tool, args, err = s.indirect(args); err != nil {
			return refusal(err)
		}
	}
	env, err := s.envelope(around, args)
	if err != nil {
		return refusal(err)
	}
	env.Profile = s.hostProfile(c)
	resp, err := s.cfg.Kernel.Call(ctx, call.Request{Spec: tool.Spec, Args: args, Principal: callerOf(ctx),
		Transport: "mcp", Envelope: env, Window: windowOf(c.Params.Meta),
		// The context ends when a modern client disconnects and when any client cancels;
		// never when a client of the legacy eras disconnects (ruling 10).
		CancelOnDisconnect: true, Holds: func() bool { return s.cfg.Access.holds(e.grant) },
		Gone: func() bool { return ctx.Err() != nil || e.gone() }})
	s.noteChange(tool.Spec, args)
	if err != nil {
		return refusal(err)
	}
	return answer(resp)
}

// indirect resolves call_runtime_tool: the target is what runs and what the evidence names.
func (s *Server) indirect(args json.RawMessage) (Tool, json.RawMessage, error) {
	var in callRuntimeToolIn
	if err := json.Unmarshal(args, &in); err != nil {
		return Tool{}, nil, fault.Wrap(err, fault.InvalidArguments, "the arguments could not be read")
	}
	target, ok := find(s.cfg.Tools, in.Tool)
	if !ok {
		return Tool{}, nil, fault.New(fault.UnknownTool, "no tool has this name").WithField("tool").
			WithNext("call read_tool_manifest to see the tools")
	}
	if target.Spec.Name == callRuntimeTool.Spec.Name {
		return Tool{}, nil, fault.New(fault.InvalidArguments, "call_runtime_tool cannot call itself").WithField("tool")
	}
	out, err := target.Input.Normalise(in.Arguments)
	return target, out, err
}

// unreached stands in tools/list entries of the catalogue; callTools answers before it.
func unreached(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return refusal(fault.New(fault.Internal, "the tool was not reached")), nil
}

func unknownTool() error {
	return nameUnknown(&jsonrpc.Error{Code: codeInvalidParams, Message: "no tool has this name; read_tool_manifest lists them"})
}

// nameUnknown marks the SDK's own answer about a tool that does not exist.
func nameUnknown(err error) error {
	var e *jsonrpc.Error
	if errors.As(err, &e) && e.Code == codeInvalidParams && e.Data == nil {
		e.Data = json.RawMessage(`{"error_kind":"` + string(fault.UnknownTool) + `"}`)
	}
	return err
}

// cacheable: every list may differ by authorisation, so no shared cache may keep it.
func cacheable(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
	c.CacheScope, c.TTLMs = "private", int(listTTL.Milliseconds())
}
