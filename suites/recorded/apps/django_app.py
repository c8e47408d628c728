"""A shop made with Django: its own login view, sessions and CSRF tokens. `django_app.py PORT FOLDER` serves it.

Every secret that it gives out goes into FOLDER/secrets, one on a line."""
import json
import os
import re
import sys
import uuid

import django
from django.conf import settings

PORT, FOLDER = sys.argv[1], sys.argv[2]
settings.configure(
    SECRET_KEY=uuid.uuid4().hex * 2,
    ALLOWED_HOSTS=['*'],
    ROOT_URLCONF=__name__,
    CSRF_HEADER_NAME='HTTP_X_CSRF_TOKEN',
    LOGIN_REDIRECT_URL='/account/',
    LOGOUT_REDIRECT_URL='/login/',
    LOGIN_URL='/login/',
    # Twenty users log in at once on a small machine.
    PASSWORD_HASHERS=['django.contrib.auth.hashers.MD5PasswordHasher'],
    DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': f'{FOLDER}/db.sqlite3', 'OPTIONS': {'timeout': 30, 'transaction_mode': 'IMMEDIATE'}}},
    INSTALLED_APPS=['django.contrib.auth', 'django.contrib.contenttypes', 'django.contrib.sessions'],
    # Sessions in memory: SQLite has one writer.
    SESSION_ENGINE='django.contrib.sessions.backends.cache',
    CACHES={'default': {'BACKEND': 'django.core.cache.backends.locmem.LocMemCache', 'OPTIONS': {'MAX_ENTRIES': 100000}}},
    MIDDLEWARE=[
        __name__ + '.keep_secrets',
        'django.contrib.sessions.middleware.SessionMiddleware',
        'django.middleware.csrf.CsrfViewMiddleware',
        'django.contrib.auth.middleware.AuthenticationMiddleware',
    ],
    TEMPLATES=[{
        'BACKEND': 'django.template.backends.django.DjangoTemplates',
        'OPTIONS': {
            'context_processors': ['django.template.context_processors.request'],
            'loaders': [('django.template.loaders.locmem.Loader', {
                'login.html': '<!DOCTYPE html><form method="post">{% csrf_token %}{{ form.as_p }}<button>Log in</button></form>',
                'account.html': open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'account.html')).read()
                .replace('HIDDEN', '{% csrf_token %}').replace('TOKEN', '{{ csrf_token }}'),
            })],
        },
    }],
)
sys.modules.setdefault(__name__, sys.modules['__main__'])
django.setup()

from django.contrib.auth import get_user_model, views  # noqa: E402
from django.contrib.auth.decorators import login_required  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.http import HttpResponse, HttpResponseNotFound, HttpResponseRedirect, JsonResponse  # noqa: E402
from django.shortcuts import render  # noqa: E402
from django.urls import path  # noqa: E402

ITEMS = {}


def keep_secrets(get_response):
    def handle(request):
        response = get_response(request)
        found = [cookie.value for cookie in response.cookies.values() if cookie.value]
        found += re.findall(r'(?:value|content)="(\w{32,})"', response.content.decode('utf-8', 'replace'))
        with open(f'{FOLDER}/secrets', 'a') as file:
            file.write(''.join(f'{secret}\n' for secret in found))
        return response
    return handle


@login_required
def account(request):
    return render(request, 'account.html')


@login_required
def items(request):
    item = str(uuid.uuid4())
    ITEMS[item] = (request.session.session_key, json.loads(request.body))
    return JsonResponse({'id': item}, status=201)


@login_required
def item(request, name):
    owner, content = ITEMS.get(name, (None, None))
    return JsonResponse(content) if owner == request.session.session_key else HttpResponseNotFound()


@login_required
def upload(request):
    ok = request.FILES['file'].read() == bytes(range(256)) * 4
    return HttpResponseRedirect('/account/') if ok else HttpResponse(status=400)


urlpatterns = [
    path('login/', views.LoginView.as_view(template_name='login.html')),
    path('logout/', views.LogoutView.as_view()),
    path('account/', account),
    path('api/items/', items),
    path('api/items/<str:name>/', item),
    path('upload/', upload),
]

if __name__ == '__main__':
    call_command('migrate', verbosity=0)
    get_user_model().objects.create_user('alice', password=os.environ['PASSWORD'])
    call_command('runserver', f'127.0.0.1:{PORT}', '--noreload', verbosity=0)
