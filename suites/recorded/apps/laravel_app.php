<?php
// A shop made with Laravel's components: encrypted session cookies, XSRF-TOKEN, and _token in forms. `php -S HOST:PORT laravel_app.php` serves it, with FOLDER in the
// environment. Every secret that it gives out goes into FOLDER/secrets, one on a line.
use Illuminate\Cookie\CookieServiceProvider;
use Illuminate\Cookie\Middleware\AddQueuedCookiesToResponse;
use Illuminate\Cookie\Middleware\EncryptCookies;
use Illuminate\Encryption\EncryptionServiceProvider;
use Illuminate\Filesystem\FilesystemServiceProvider;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Http\Middleware\VerifyCsrfToken;
use Illuminate\Http\JsonResponse;
use Illuminate\Http\Request;
use Illuminate\Http\Response;
use Illuminate\Session\Middleware\StartSession;
use Illuminate\Session\SessionServiceProvider;
use Illuminate\Session\TokenMismatchException;
use Illuminate\Support\Facades\Facade;

error_reporting(E_ALL & ~E_DEPRECATED);
require 'Illuminate/autoload.php';
require 'Illuminate/Foundation/helpers.php';

$folder = getenv('FOLDER');
$app = new Application($folder);
$app->instance('env', 'local');
$app->instance('config', new Illuminate\Config\Repository([
    'app' => ['key' => hash('sha256', $folder . getenv('PASSWORD'), true), 'cipher' => 'AES-256-CBC', 'debug' => true],
    'session' => [
        'driver' => 'file', 'files' => "$folder/sessions", 'lifetime' => 120, 'expire_on_close' => false, 'encrypt' => false, 'lottery' => [0, 100],
        'cookie' => 'laravel_session', 'path' => '/', 'domain' => null, 'secure' => false, 'http_only' => true, 'same_site' => 'lax',
    ],
]));
foreach (["$folder/sessions", "$folder/items"] as $needed) {
    @mkdir($needed);
}
Facade::setFacadeApplication($app);
foreach ([FilesystemServiceProvider::class, EncryptionServiceProvider::class, CookieServiceProvider::class, SessionServiceProvider::class] as $provider) {
    $app->register($provider);
}
$app->boot();
$request = Request::capture();
$app->instance('request', $request);

function page(string $text): string
{
    $hidden = '<input type="hidden" name="_token" value="' . csrf_token() . '">';
    return str_replace(['HIDDEN', 'TOKEN'], [$hidden, csrf_token()], $text);
}

class RequireUser
{
    public function handle(Request $request, Closure $next)
    {
        return $request->session()->has('user') ? $next($request) : redirect('/login/');
    }
}

$web = [EncryptCookies::class, AddQueuedCookiesToResponse::class, StartSession::class, VerifyCsrfToken::class];
$app['router']->middleware($web)->group(function ($router) use ($folder) {
    $router->get('/login', fn () => page('<!DOCTYPE html><form method="post">HIDDEN<input name="username"><input type="password" name="password"><button>Log in</button></form>'));
    $router->post('/login', function (Request $request) {
        if ($request->input('username') !== 'alice' || $request->input('password') !== getenv('PASSWORD')) {
            return new Response('', 401);
        }
        $request->session()->regenerate();
        $request->session()->put('user', bin2hex(random_bytes(8)));
        return redirect('/account/');
    });
    $router->post('/logout', function (Request $request) {
        $request->session()->invalidate();
        return redirect('/login/');
    });
    $router->middleware([RequireUser::class])->group(function ($router) use ($folder) {
        $router->get('/account', fn () => page(file_get_contents(__DIR__ . '/account.html')));
        $router->post('/api/items', function (Request $request) use ($folder) {
            $id = random_int(100000000, 999999999);
            file_put_contents("$folder/items/$id", json_encode([$request->session()->get('user'), $request->json()->all()]));
            return new JsonResponse(['id' => $id], 201);
        });
        $router->get('/api/items/{id}', function (Request $request, string $id) use ($folder) {
            [$owner, $content] = json_decode(@file_get_contents("$folder/items/" . basename($id)) ?: '[null, null]', true);
            return $owner === $request->session()->get('user') ? new JsonResponse($content) : new Response('', 404);
        });
        $router->post('/upload', function (Request $request) {
            $is_it = $request->file('file')->getContent() === str_repeat(implode('', array_map('chr', range(0, 255))), 4);
            return $is_it ? redirect('/account/') : new Response('', 400);
        });
    });
});

try {
    $response = $app['router']->dispatch($request);
} catch (TokenMismatchException) {
    $response = new Response('', 419);
}
$found = array_map(fn ($cookie) => rawurlencode((string) $cookie->getValue()), $response->headers->getCookies());
preg_match_all('/(?:value|content)="(\w{32,})"/', (string) $response->getContent(), $shown);
file_put_contents("$folder/secrets", implode('', array_map(fn ($secret) => "$secret\n", [...$found, ...$shown[1]])), FILE_APPEND);
$response->send();
