# A shop made with Rails: encrypted session cookies, and an authenticity token that is masked anew on each page. `rails_app.rb PORT FOLDER` serves it.
# Every secret that it gives out goes into FOLDER/secrets, one on a line.
require 'logger'
require 'action_controller/railtie'
require 'puma'

PORT, FOLDER = ARGV
ACCOUNT = File.read(File.join(__dir__, 'account.html'))
LOGIN = '<!DOCTYPE html><form method="post">HIDDEN<input name="username"><input type="password" name="password"><button>Log in</button></form>'.freeze
ITEMS = {}

class KeepSecrets
  def initialize(app) = @app = app

  def call(env)
    status, headers, body = @app.call(env)
    text = +''
    body.each { |part| text << part }
    body.close if body.respond_to?(:close)
    found = headers['Set-Cookie'].to_s.scan(/^[^=]+=([^;]+)/) + text.scan(/(?:value|content)="([\w+\/=-]{32,})"/)
    File.open("#{FOLDER}/secrets", 'a') { |file| found.flatten.each { |secret| file.puts(secret) } }
    [status, headers, [text]]
  end
end

class Shop < Rails::Application
  config.root = FOLDER
  config.load_defaults 6.1
  config.eager_load = false
  config.consider_all_requests_local = true
  config.secret_key_base = SecureRandom.hex(64)
  config.session_store :cookie_store, key: '_shop_session'
  config.hosts.clear
  config.logger = Logger.new("#{FOLDER}/rails.log")
  config.middleware.insert_before 0, KeepSecrets
  routes.append do
    get '/login' => 'shop#login'
    post '/login' => 'shop#log_in'
    post '/logout' => 'shop#log_out'
    get '/account' => 'shop#account'
    post '/api/items' => 'shop#make'
    get '/api/items/:id' => 'shop#item'
    post '/upload' => 'shop#upload'
  end
end

class ShopController < ActionController::Base
  protect_from_forgery with: :exception
  before_action :require_user, except: %i[login log_in]

  def login = page(LOGIN)

  def account = page(ACCOUNT)

  def log_in
    return head(:unauthorized) unless params[:username] == 'alice' && params[:password] == ENV.fetch('PASSWORD')

    reset_session
    session[:user] = SecureRandom.uuid
    redirect_to '/account/'
  end

  def log_out
    reset_session
    redirect_to '/login/'
  end

  def make
    id = SecureRandom.random_number(10**9)
    ITEMS[id.to_s] = [session[:user], request.request_parameters.slice('article')]
    render json: { id: id }, status: :created
  end

  def item
    owner, content = ITEMS[params[:id]]
    owner == session[:user] ? render(json: content) : head(:not_found)
  end

  def upload
    params[:file].read == (0..255).to_a.pack('C*') * 4 ? redirect_to('/account/') : head(:bad_request)
  end

  private

  def page(text)
    token = form_authenticity_token
    hidden = %(<input type="hidden" name="authenticity_token" value="#{token}">)
    render html: text.gsub('HIDDEN', hidden).sub('TOKEN', token).html_safe
  end

  def require_user
    redirect_to '/login/' unless session[:user]
  end
end

Shop.initialize!
server = Puma::Server.new(Shop)
server.add_tcp_listener('127.0.0.1', PORT.to_i)
server.run.join
