// Go's net/http walks through the shop: `go run ./clients/go URL USER PASSWORD FILE`.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
)

var client http.Client

func ask(method, target, contentType, token string, body io.Reader) string {
	request, err := http.NewRequest(method, os.Args[1]+target, body)
	check(err)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		request.Header.Set("X-CSRF-Token", token)
	}
	response, err := client.Do(request)
	check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode >= 400 {
		check(fmt.Errorf("%s %s: %s", method, target, response.Status))
	}
	return string(text)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hidden(page string) (string, string) {
	found := regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`).FindStringSubmatch(page)
	return found[1], found[2]
}

func post(target string, form url.Values) string {
	return ask("POST", target, "application/x-www-form-urlencoded", "", strings.NewReader(form.Encode()))
}

func main() {
	client.Jar, _ = cookiejar.New(nil)
	name, value := hidden(ask("GET", "/login/", "", "", nil))
	page := post("/login/", url.Values{name: {value}, "username": {os.Args[2]}, "password": {os.Args[3]}})
	token := regexp.MustCompile(`name="csrf-token" content="([^"]*)"`).FindStringSubmatch(page)[1]
	var made struct{ ID json.RawMessage }
	check(json.Unmarshal([]byte(ask("POST", "/api/items/", "application/json", token, strings.NewReader(`{"article":1}`))), &made))
	ask("GET", "/api/items/"+strings.Trim(string(made.ID), `"`)+"/", "", "", nil)
	name, value = hidden(page)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	check(form.WriteField(name, value))
	part, err := form.CreateFormFile("file", "f")
	check(err)
	content, err := os.ReadFile(os.Args[4])
	check(err)
	part.Write(content)
	form.Close()
	ask("POST", "/upload/", form.FormDataContentType(), "", &body)
	post("/logout/", url.Values{name: {value}})
}
