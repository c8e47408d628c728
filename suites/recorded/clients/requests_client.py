"""Python's requests walks through the shop: `requests_client.py URL USER PASSWORD FILE`."""
import re
import sys

import requests

url, user, password, file = sys.argv[1:]
session = requests.Session()


def hidden(page):
    return dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page.text)[:1])


def ok(response):
    response.raise_for_status()
    return response


page = ok(session.get(f'{url}/login/'))
page = ok(session.post(f'{url}/login/', data={**hidden(page), 'username': user, 'password': password}))
token = re.search(r'name="csrf-token" content="([^"]*)"', page.text)[1]
made = ok(session.post(f'{url}/api/items/', json={'article': 1}, headers={'X-CSRF-Token': token})).json()
ok(session.get(f'{url}/api/items/{made["id"]}/'))
ok(session.post(f'{url}/upload/', data=hidden(page), files={'file': open(file, 'rb')}, allow_redirects=False))
ok(session.post(f'{url}/logout/', data=hidden(page)))
