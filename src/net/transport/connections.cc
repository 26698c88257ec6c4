#include "net/transport/connections.h"

#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/log.h"

namespace weft::net {
namespace {

constexpr std::size_t kPosted = 64;   // operations in flight on a connection
constexpr std::size_t kReceives = 4;  // posted on a connection, at most
constexpr std::size_t kSharedReceives = 64;
constexpr std::size_t kDiallers = 4;  // threads; verbs blocks one for up to 2 s if the peer does not answer
constexpr auto kRestMin = std::chrono::milliseconds(100), kRestMax = std::chrono::milliseconds(500);

void forget_port(void* address) {
  auto* const family = static_cast<sockaddr*>(address);
  if (family->sa_family == AF_INET) static_cast<sockaddr_in*>(address)->sin_port = 0;
  if (family->sa_family == AF_INET6) static_cast<sockaddr_in6*>(address)->sin6_port = 0;
}

}  // namespace

Result<std::unique_ptr<Connections>> Connections::open(InfoPtr info) {
  info->tx_attr->size = std::min(info->tx_attr->size, kPosted);
  info->rx_attr->size = kReceives;
  WEFT_TRY(auto domain, Domain::open(std::move(info)));
  WEFT_TRY(auto events, open_events(domain->fabric.get(), FI_WAIT_NONE));
  auto made = std::make_unique<Connections>(std::move(domain), std::move(events));
  if (is_over_tcp(made->domain_->provider())) WEFT_CHECK(made->share_receives());
  return made;
}

// Makes one receive context for all connections. Without it libfabric's net (1.17) crashes on a message with a tag,
// which any host may send.
Status Connections::share_receives() {
  WEFT_TRY(receives_, make_fid<fid_ep>("a receive context", [this](fid_ep** out) {
             return fi_srx_context(domain_->domain.get(), domain_->info->rx_attr, out, nullptr);
           }));
  if (const int failed = fi_ep_bind(receives_.get(), &domain_->queue->fid, FI_RECV); failed != 0)
    return fabric_error(failed, "binding the queue of receives");
  return {};
}

Connections::~Connections() {
  stop();
  close();
}

// Half of the queue, because several peers of the transport may share one line.
std::size_t Connections::posted_max() const {
  return domain_->info->tx_attr->size / 2;
}

std::size_t Connections::half_open() const {
  const std::lock_guard lock(mutex_);
  return half_open_;
}

Status Connections::start(Owner& owner) {
  owner_ = &owner;
  WEFT_TRY(listener_, Listener::open(*domain_->info, [&owner] { owner.wake(); }));
  if (receives_) owner.receive_on(0, kSharedReceives);
  for (std::size_t i = 0; i < kDiallers; ++i) diallers_.emplace_back([this] { run_dialler(); });
  return {};
}

void Connections::stop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& dialler : diallers_) dialler.join();
  diallers_.clear();
  listener_.reset();
}

void Connections::close() {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, line] : lines_)
    if (line->connection) line->connection->endpoint.reset();
  for (const auto& [id, caller] : callers_) caller->endpoint.reset();
  receives_.reset();
}

Result<std::shared_ptr<Route>> Connections::route(std::span<const std::byte> address) {
  EndpointAddress key(address.begin(), address.end());
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Line>& line = lines_[key];
  if (!line) line = std::make_shared<Line>(std::move(key));
  return std::shared_ptr<Route>(line);
}

long Connections::post(Route& route, Operation& operation) {
  const std::lock_guard lock(mutex_);
  auto& line = static_cast<Line&>(route);
  line.used = Clock::now();
  if (!line.connection) {
    if (line.dialling) return -FI_EAGAIN;
    if (line.used < line.rests_until) return -(line.failure != 0 ? line.failure : FI_EHOSTUNREACH);
    dial_soon(lines_.at(line.address));
    return -FI_EAGAIN;
  }
  Connection& connection = *line.connection;
  if (!connection.up || connection.broken) return -FI_EAGAIN;
  operation.connection = connection.id;
  if (operation.kind == OperationKind::send) static_cast<MessageOperation&>(operation).data = connection.number;
  const long failed = post_to(connection.endpoint.get(), FI_ADDR_UNSPEC, operation);
  if (failed != 0 && failed != -FI_EAGAIN) break_off(connection, static_cast<int>(-failed));
  return failed;
}

long Connections::post_receive(MessageOperation& receive) {
  const std::lock_guard lock(mutex_);
  if (receive.connection == 0) return post_receive_on(receives_.get(), receive);
  Connection* const connection = find(receive.connection);
  if (connection == nullptr || connection->broken) return -FI_ENOTCONN;
  return post_receive_on(connection->endpoint.get(), receive);
}

std::optional<std::uint64_t> Connections::ends(Route& route) const {
  const std::lock_guard lock(mutex_);
  return static_cast<Line&>(route).ends;
}

EndpointAddress Connections::caller(ConnectionId connection) const {
  const std::lock_guard lock(mutex_);
  const Connection* const found = find(connection);
  return found == nullptr ? EndpointAddress() : found->caller;
}

std::uint64_t Connections::failures(Route& route) const {
  const std::lock_guard lock(mutex_);
  return static_cast<Line&>(route).failed;
}

void Connections::completed(ConnectionId id, bool well, std::size_t received) {
  const std::lock_guard lock(mutex_);
  if (!well) events_due_ = true;  // the event may have the error number
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  if (!well) return break_off(*connection);
  connection->heard = Clock::now();
  if (received > 0) connection->spoke = connection->heard;
}

void Connections::completed_own(const void* context, bool well) {
  const std::lock_guard lock(mutex_);
  const auto is_its = [context](const auto& entry) { return &entry.second->pulse == context; };
  const auto found = std::find_if(by_id_.begin(), by_id_.end(), is_its);
  if (found == by_id_.end()) return;
  Connection& connection = *found->second;
  connection.pulsing = false;
  if (!well) return break_off(connection);
  connection.heard = Clock::now();
}

Result<std::unique_ptr<Connection>> Connections::make(fi_info& info, Line* line) {
  WEFT_TRY(auto endpoint, make_fid<fid_ep>("an endpoint", [&](fid_ep** out) {
             return fi_endpoint(domain_->domain.get(), &info, out, nullptr);
           }));
  if (const int failed = fi_ep_bind(endpoint.get(), &events_->fid, 0); failed != 0)
    return fabric_error(failed, "binding the queue of events");
  if (receives_)
    if (const int failed = fi_ep_bind(endpoint.get(), &receives_->fid, 0); failed != 0)
      return fabric_error(failed, "binding the receive context");
  if (const int failed = fi_ep_bind(endpoint.get(), &domain_->queue->fid, FI_TRANSMIT | FI_RECV); failed != 0)
    return fabric_error(failed, "binding the queue of completions");
  if (const int failed = fi_enable(endpoint.get()); failed != 0) return fabric_error(failed, "enabling an endpoint");
  const std::lock_guard lock(mutex_);
  auto made = std::make_unique<Connection>(next_++, std::move(endpoint), line);
  add(*made);
  return made;
}

void Connections::add(Connection& connection) {
  by_id_[connection.id] = &connection;
  by_endpoint_[&connection.endpoint->fid] = &connection;
  count_new(connection, 1);
}

void Connections::drop(Connection& connection) {
  by_id_.erase(connection.id);
  by_endpoint_.erase(&connection.endpoint->fid);
  if (!connection.up) count_new(connection, -1);
}

// Marks a connection for closing; the progress thread closes it.
void Connections::break_off(Connection& connection, int failure) {
  if (connection.failure == 0) connection.failure = failure;
  connection.broken = any_broken_ = true;
}

void Connections::count_new(const Connection& connection, int more) {
  new_ += static_cast<std::size_t>(more);
  if (connection.line == nullptr) half_open_ += static_cast<std::size_t>(more);
}

Connection* Connections::find(ConnectionId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

void Connections::dial_soon(const std::shared_ptr<Line>& line) {
  line->dialling = true;
  to_dial_.push_back(line);
  changed_.notify_one();
}

void Connections::run_dialler() {
  for (;;) {
    std::shared_ptr<Line> line;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !to_dial_.empty(); });
      if (ending_) return;
      line = std::move(to_dial_.front());
      to_dial_.pop_front();
    }
    dial(*line);
    owner_->wake();
  }
}

void Connections::dial(Line& line) {
  auto info = info_for(line);
  Result<std::unique_ptr<Connection>> made = Error{Errc::internal, "not made"};
  if (info.ok()) made = make(**info, &line);
  fid_ep* endpoint = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!made.ok()) {
      line.dialling = false;
      return rest(line, FI_EHOSTUNREACH);
    }
    line.connection = std::move(*made);
    endpoint = line.connection->endpoint.get();
  }
  const int failed = fi_connect(endpoint, line.address.data(), nullptr, 0);
  const std::lock_guard lock(mutex_);
  line.dialling = false;
  if (failed == 0) return;
  break_off(*line.connection, -failed);
}

// Returns the info of an endpoint that connects from this node's host, at any port, to the peer.
Result<InfoPtr> Connections::info_for(const Line& line) const {
  InfoPtr info(fi_dupinfo(domain_->info.get()));
  void* const to = std::malloc(line.address.size());  // fi_freeinfo frees it
  if (!info || to == nullptr) return Error{Errc::internal, "libfabric: no memory"};
  std::memcpy(to, line.address.data(), line.address.size());
  std::free(info->dest_addr);
  info->dest_addr = to;
  info->dest_addrlen = line.address.size();
  info->rx_attr->size = 1;  // gets no message, and fails when the connection ends
  if (info->src_addr != nullptr) forget_port(info->src_addr);
  return info;
}

void Connections::rest(Line& line, int failure) {
  line.failure = failure;
  ++line.failed;
  log_debug(LogCategory::net, "a connection failed, failures in a row: {}: {}", line.failures + 1,
            fi_strerror(failure));
  const auto pause = kRestMin * (1U << std::min(line.failures++, 8));
  line.rests_until = Clock::now() + std::min<Clock::duration>(pause, kRestMax);
}

}  // namespace weft::net
