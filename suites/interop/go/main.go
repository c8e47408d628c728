// The Go programs of the suite: `serve` is a server in quic-go, `backend` the same answers over TCP, for the servers that are
// proxies, and `probe` asks a server for what squall does not show: interim responses and trailers.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

var events = log.New(io.Discard, "", 0)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address and port")
	logPath := flag.String("log", os.DevNull, "a line for each request and each key update")
	retry := flag.Bool("retry", false, "validate each client's address")
	version2 := flag.Bool("version2", false, "support QUIC version 2 only")
	early := flag.String("early", "accept", "0-RTT: accept, or reject on every second connection")
	flag.Parse()
	file, err := os.Create(*logPath)
	check(err)
	events.SetOutput(file)
	switch flag.Arg(0) {
	case "serve":
		check(serve(*listen, *retry, config(*version2, *early == "reject")))
	case "backend":
		check(http.ListenAndServe(*listen, http.HandlerFunc(answer)))
	case "probe":
		check(probe(flag.Arg(1)))
	default:
		log.Fatal("expected serve, backend or probe")
	}
}

func serve(listen string, retry bool, config *quic.Config) error {
	certificate, err := tls.LoadX509KeyPair("cert.pem", "key.pem")
	check(err)
	address, err := net.ResolveUDPAddr("udp", listen)
	check(err)
	socket, err := net.ListenUDP("udp", address)
	check(err)
	transport := quic.Transport{Conn: socket, VerifySourceAddress: func(net.Addr) bool { return retry }}
	settings := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate}})
	listener, err := transport.ListenEarly(settings, config)
	check(err)
	return (&http3.Server{Handler: http.HandlerFunc(answer)}).ServeListener(listener)
}

// Tickets allow 0-RTT if their connection does, so a server that rejects has to change its mind in between.
func config(isVersion2 bool, rejects bool) *quic.Config {
	config := &quic.Config{Allow0RTT: true, Tracer: func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return recorder{} }}
	if isVersion2 {
		config.Versions = []quic.Version{quic.Version2}
	}
	if rejects {
		without := config.Clone()
		without.Allow0RTT = false
		var count atomic.Int64
		config.GetConfigForClient = func(*quic.ClientInfo) (*quic.Config, error) {
			if count.Add(1)%2 == 0 {
				return without, nil
			}
			return config.Clone(), nil
		}
	}
	return config
}

// Writes key updates to the log.
type recorder struct{}

func (recorder) AddProducer() qlogwriter.Recorder   { return recorder{} }
func (recorder) SupportsSchemas(schema string) bool { return schema == qlog.EventSchema }
func (recorder) Close() error                       { return nil }
func (recorder) RecordEvent(event qlogwriter.Event) {
	if update, ok := event.(qlog.KeyUpdated); ok && update.Trigger != qlog.KeyUpdateTLS {
		events.Print("key_update")
	}
}

func answer(w http.ResponseWriter, r *http.Request) {
	respond(w, r)
	events.Printf("request %s %s", r.Method, r.URL.Path)
}

func respond(w http.ResponseWriter, r *http.Request) {
	name, count, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch name {
	case "bytes":
		size, _ := strconv.Atoi(count)
		w.Header().Set("Content-Length", count)
		w.Write(bytes.Repeat([]byte("."), size))
	case "upload":
		size, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, size)
	case "trailers":
		w.Header().Set("Trailer", "X-Checksum")
		fmt.Fprint(w, "hello\n")
		w.Header().Set("X-Checksum", "1")
	case "hints":
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "hello\n")
	case "empty":
		w.WriteHeader(http.StatusNoContent)
	case "moved":
		http.Redirect(w, r, "/", http.StatusFound)
	case "hang":
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	default:
		fmt.Fprint(w, "hello\n")
	}
}

// Prints what a server sends apart from the response, as JSON.
func probe(url string) error {
	found := struct {
		Status  int
		Interim []int
		Trailer []string
	}{}
	trace := httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
		found.Interim = append(found.Interim, code)
		return nil
	}}
	ctx, cancel := context.WithTimeout(httptrace.WithClientTrace(context.Background(), &trace), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	check(err)
	transport := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.Close()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	found.Status = response.StatusCode
	for name := range response.Trailer {
		found.Trailer = append(found.Trailer, name)
	}
	json.NewEncoder(os.Stdout).Encode(found)
	return err
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
