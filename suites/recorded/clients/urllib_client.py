"""Python's urllib walks through the shop: `urllib_client.py URL USER PASSWORD FILE`."""
import json
import re
import sys
from http.cookiejar import CookieJar
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

url, user, password, file = sys.argv[1:]
opener = build_opener(HTTPCookieProcessor(CookieJar()))


def ask(path, body=None, headers={}):
    return opener.open(Request(url + path, body, headers)).read().decode()


def hidden(page):
    return re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page)[0]


def form(*pairs):
    return urlencode(pairs).encode()


page = ask('/login/', form(hidden(ask('/login/')), ('username', user), ('password', password)))
token = re.search(r'name="csrf-token" content="([^"]*)"', page)[1]
headers = {'X-CSRF-Token': token, 'Content-Type': 'application/json'}
made = json.loads(ask('/api/items/', b'{"article": 1}', headers))
ask(f'/api/items/{made["id"]}/')
name, value = hidden(page)
body = (f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n').encode()
ask('/upload/', body + open(file, 'rb').read() + b'\r\n--b--\r\n', {'Content-Type': 'multipart/form-data; boundary=b'})
ask('/logout/', form(hidden(page)))
