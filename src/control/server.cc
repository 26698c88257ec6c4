#include "control/server.h"

#include <fmt/core.h>

#include <utility>

#include "base/text.h"
#include "control/connection.h"
#include "control/server_loop.h"
#include "os/sys.h"

namespace weft::control {
namespace {

constexpr mode_t kMode = 0666;  // every user may connect, and each handler checks the user's rights

std::function<UserShares::Bound()> fixed(std::uint64_t each_max, std::uint64_t others_max, std::uint64_t max) {
  return [=] { return UserShares::Bound{each_max, others_max, max}; };
}

}  // namespace

Server::Server(std::string path, Fd listener, ServerOptions options)
    : path_(std::move(path)),
      listener_(std::move(listener)),
      options_(std::move(options)),
      tally_(std::make_shared<Tally>()),
      connections_of_(fixed(limits::kControlConnectionsEachMax, limits::kControlConnectionsOthersMax,
                            limits::kControlConnectionsMax),
                      own_user()),
      handlers_of_(fixed(limits::kControlRunningEachMax, limits::kControlRunningOthersMax, limits::kControlRunningMax),
                   own_user()),
      descriptors_of_(fixed(limits::kControlFdsEachMax, limits::kControlFdsOthersMax, limits::kControlFdsMax),
                      own_user()) {
  on(std::string(kAliveRequest), Runs::at_once, [](const std::shared_ptr<Call>& call) { call->answer("{}"); });
}

Result<std::unique_ptr<Server>> Server::listen(const std::string& path, ServerOptions options) {
  WEFT_TRY(Fd listener, listen_unix(path, kMode));
  return std::unique_ptr<Server>(new Server(path, std::move(listener), std::move(options)));
}

Server::~Server() {
  if (loop_) loop_->end();
}

void Server::on(const std::string& name, Runs runs, Handler handler) {
  routes_[name] = {runs, std::move(handler)};
}

void Server::start() {
  loop_ = std::make_unique<Loop>(*this);
  loop_->start();
}

bool Server::drain(std::chrono::milliseconds patience, std::chrono::milliseconds grace) {
  draining_ = true;
  if (loop_) loop_->stop_accepting();
  static_cast<void>(remove_unix(path_));
  if (tally_->wait_idle(patience)) return true;
  if (loop_) loop_->cancel_all();
  return tally_->wait_idle(grace);
}

Status Server::take(const std::shared_ptr<Connection>& connection, Message message, std::vector<Job>& jobs) {
  const uid_t user = connection->peer().uid;
  if (const std::size_t count = message.fds.size(); count > 0) {
    message.share = descriptors_of_.take(user, count);
    if (!message.share) return Error{Errc::busy, fmt::format("user {} has too many descriptors in the daemon", user)};
  }
  switch (message.kind) {
    case MessageKind::request:
      return begin(connection, std::move(message), jobs);
    case MessageKind::more:
      if (auto call = connection->find(message.id)) call->deliver(std::move(message));
      return {};
    case MessageKind::cancel:
      if (auto call = connection->find(message.id)) call->cancel();
      return {};
    default:
      return Error{Errc::invalid, "a control message: expected one to the daemon"};
  }
}

Status Server::begin(const std::shared_ptr<Connection>& connection, Message request, std::vector<Job>& jobs) {
  const std::uint64_t id = request.id;
  const auto route = routes_.find(request.name);
  std::string name = route == routes_.end() ? "other" : request.name;
  tally_->call_begins();
  const auto since = std::chrono::steady_clock::now();
  Call::Ends ends;
  if (options_.observe)
    ends.answers = [observe = options_.observe, name, since](bool failed) {
      observe(name, std::chrono::steady_clock::now() - since, failed);
    };
  ends.gone = [tally = tally_] { tally->call_ends(); };
  auto call = std::make_shared<Call>(connection, std::move(request), std::move(ends));
  Status added = connection->add(id, call);
  if (!added.ok()) {
    call->abandon();
    return added;
  }
  if (route == routes_.end())
    call->fail({Errc::unsupported, fmt::format("weftd: no request \"{}\"", printable(call->name()))});
  else if (draining_)
    call->fail({Errc::unreachable, "weftd: it is ending"});
  else if (route->second.runs == Runs::at_once)
    route->second.handler(call);
  else
    queue(route->second, std::move(call), jobs);
  return {};
}

void Server::queue(const Route& route, std::shared_ptr<Call> call, std::vector<Job>& jobs) {
  const uid_t user = call->peer().uid;
  auto share = handlers_of_.take(user);
  if (!share)
    return call->fail({Errc::busy, fmt::format("weftd: too many requests of user {}, or of all users, run", user)});
  jobs.push_back({&route, std::move(call), std::move(share)});
}

}  // namespace weft::control
