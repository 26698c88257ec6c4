#include "weft/cluster/exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "net/calls/begun_calls.h"
#include "net/calls/incoming.h"
#include "net/calls/outgoing.h"
#include "net/session/cluster_keys.h"
#include "net/session/key_files.h"

namespace weft {
namespace net {

// One transport of an exchange, with the calls and the sessions over it.
class End {
 public:
  ~End() { close(); }

  // Makes the transport. Messages that arrive before begin() are dropped.
  Status listen(const MakeTransport& make);
  // Once, after listen(). `keys` outlives this. `landings` belong to this transport, or to one that ends after it.
  void begin(const ExchangeOptions& options, const LiveKeys& keys, std::shared_ptr<LandingPool> landings);
  void end_sessions_without(const KeyRing& keys);
  void close();  // waits for answers in work; afterwards messages are dropped

  Transport& transport() const { return *transport_; }
  Outgoing& outgoing() { return *outgoing_; }
  BegunCalls& begun() { return *begun_; }
  void add_to(ExchangeFigures& figures) const;

 private:
  void receive(std::span<const std::byte> message);

  std::atomic<bool> open_{false};
  std::optional<Refusals> refusals_;
  std::optional<Outgoing> outgoing_;
  std::optional<BegunCalls> begun_;
  std::optional<Incoming> incoming_;
  std::unique_ptr<Transport> transport_;  // ends first: its thread calls receive()
};

Status End::listen(const MakeTransport& make) {
  WEFT_TRY(transport_, make([this](std::span<const std::byte> message) { receive(message); }));
  return {};
}

void End::begin(const ExchangeOptions& options, const LiveKeys& keys, std::shared_ptr<LandingPool> landings) {
  const Identity identity{&keys, options.node, transport_->address()};
  outgoing_.emplace(*transport_, identity, std::move(landings));
  begun_.emplace(*outgoing_);
  refusals_.emplace(options.address_text);
  incoming_.emplace(*transport_, identity, options.server, *refusals_, options.threads);
  open_.store(true, std::memory_order_release);
}

void End::end_sessions_without(const KeyRing& keys) {
  outgoing_->end_sessions_without(keys);
  incoming_->end_sessions_without(keys);
}

void End::close() {
  if (!open_.exchange(false)) return;
  incoming_->close();
  begun_->cancel();
  outgoing_->close();  // ends what begun_ waits for
  begun_->close();
}

void End::receive(std::span<const std::byte> message) {
  if (!open_.load(std::memory_order_acquire)) return;
  const auto frame = parse_frame(message);
  std::optional<PeerRefusal> why = PeerRefusal::malformed;
  if (frame.ok()) why = outgoing_->receive(*frame);
  if (why == PeerRefusal::unknown_session) why = incoming_->receive(*frame);
  if (why) refusals_->count(*why, transport_->sender());
}

void End::add_to(ExchangeFigures& figures) const {
  const auto passed_over = transport_->passed_over();
  figures.passed_over.insert(figures.passed_over.end(), passed_over.begin(), passed_over.end());
  refusals_->add_to(figures);
  figures.transport += transport_->counters();
  outgoing_->add_to(figures);
  begun_->add_to(figures);
  incoming_->add_to(figures);
}

}  // namespace net

struct Exchange::Impl {
  Impl(std::string file, net::KeyRing ring) : key_file(std::move(file)), keys(std::move(ring)) {}
  ~Impl();
  Status add_end(const ExchangeOptions& options, const MakeTransport& make);
  Result<net::End*> end_for(const PeerAddress& peer) const;
  Status reload_keys();  // with `changing` held

  const std::string key_file;
  net::LiveKeys keys;
  std::mutex changing;  // held while the files of the keys change or are read
  std::vector<Endpoint> endpoints;
  std::vector<std::unique_ptr<net::End>> ends;  // in the order of endpoints
  std::shared_ptr<net::LandingPool> landings;   // of the first end; all ends read into them
};

Status Exchange::Impl::add_end(const ExchangeOptions& options, const MakeTransport& make) {
  auto end = std::make_unique<net::End>();
  WEFT_CHECK(end->listen(make));
  if (!landings) landings = std::make_shared<net::LandingPool>(end->transport());
  end->begin(options, keys, landings);
  endpoints.push_back({end->transport().provider(), end->transport().address()});
  ends.push_back(std::move(end));
  return {};
}

// The first end has registered the landings, which the other ends may still read into. So it ends last.
Exchange::Impl::~Impl() {
  for (const auto& end : ends) end->close();
  if (landings) landings->close();
  while (!ends.empty()) ends.pop_back();
}

Exchange::Exchange(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exchange::~Exchange() = default;

std::span<const Endpoint> Exchange::endpoints() const {
  return impl_->endpoints;
}

std::string Exchange::key_proof(std::string_view node) const {
  const auto ring = impl_->keys.get();
  std::string proofs;
  for (const net::ClusterKey& key : ring->keys()) proofs += (proofs.empty() ? "" : ",") + key.proofs().of(node);
  return proofs;
}

bool Exchange::accepts_proof(std::string_view node, std::string_view proof) const {
  const auto ring = impl_->keys.get();
  return std::ranges::any_of(ring->keys(), [&](const net::ClusterKey& key) {
    return proof.find(key.proofs().of(node)) != std::string_view::npos;
  });
}

bool Exchange::shows_key(std::string_view node, std::string_view proof, std::string_view name) const {
  const auto ring = impl_->keys.get();
  return std::ranges::any_of(ring->keys(), [&](const net::ClusterKey& key) {
    return key.name() == name && proof.find(key.proofs().of(node)) != std::string_view::npos;
  });
}

std::vector<std::string> Exchange::key_names() const {
  const auto ring = impl_->keys.get();
  std::vector<std::string> names;
  for (const net::ClusterKey& key : ring->keys()) names.push_back(key.name());
  return names;
}

Result<KeyState> Exchange::key_state() const {
  return net::read_key_state(impl_->key_file);
}

Result<KeyOrder> Exchange::key_order(const std::string& name) const {
  if (!name.empty()) return net::read_key_order(impl_->key_file, name);
  KeyOrder order = net::new_key_order();
  WEFT_CHECK(net::note_made_key(impl_->key_file, order.name));
  return order;
}

Status Exchange::change_key(const KeyOrder& order) {
  const std::lock_guard lock(impl_->changing);
  WEFT_CHECK(net::change_key_files(impl_->key_file, order));
  return impl_->reload_keys();
}

Status Exchange::reload_keys() {
  const std::lock_guard lock(impl_->changing);
  return impl_->reload_keys();
}

Status Exchange::Impl::reload_keys() {
  WEFT_TRY(net::KeyRing ring, net::read_key_ring(key_file));
  keys.set(ring);
  for (const auto& end : ends) end->end_sessions_without(ring);
  return {};
}

Result<net::End*> Exchange::Impl::end_for(const PeerAddress& peer) const {
  const auto found =
      peer.provider.empty() ? endpoints.begin() : std::ranges::find(endpoints, peer.provider, &Endpoint::provider);
  if (found == endpoints.end())
    return Error{Errc::unsupported,
                 fmt::format("peer {}: this node has no endpoint of provider {}", peer.node, peer.provider)};
  return ends[static_cast<std::size_t>(found - endpoints.begin())].get();
}

Result<std::unique_ptr<Answer>> Exchange::call(const PeerAddress& peer, std::span<const std::byte> request,
                                               Deadline deadline, const OnSign& on_sign) {
  WEFT_TRY(net::End* const end, impl_->end_for(peer));
  return end->outgoing().call(peer, request, deadline, on_sign);
}

void Exchange::begin(const PeerAddress& peer, std::span<const std::byte> request, std::chrono::milliseconds patience,
                     CallDone done) {
  auto end = impl_->end_for(peer);
  if (!end.ok()) return impl_->ends.front()->begun().refuse(std::move(end).error(), std::move(done));
  (*end)->begun().begin(peer, request, patience, std::move(done));
}

Result<LandingBuffer> Exchange::landing(Deadline deadline) {
  return impl_->landings->take(deadline);
}

Result<std::shared_ptr<Landing>> Exchange::register_landing(std::span<std::byte> memory,
                                                            std::shared_ptr<const void> owner) {
  return impl_->ends.front()->transport().open_landing(memory, std::move(owner));
}

std::uint64_t Exchange::pinned_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& end : impl_->ends) bytes += end->transport().pinned_bytes();
  return bytes;
}

ExchangeFigures Exchange::figures() const {
  ExchangeFigures out;
  out.pinned_bytes = pinned_bytes();
  out.buffers_aside = impl_->landings->aside();
  for (const auto& end : impl_->ends) end->add_to(out);
  return out;
}

namespace {

MakeTransport over(const std::string& provider, const ExchangeOptions& options) {
  return [provider, &options](Transport::Receiver receiver) {
    return open_fabric_transport({provider, options.host, options.port, std::move(receiver)});
  };
}

Status add_fabric_ends(Exchange::Impl& to, const ExchangeOptions& options) {
  WEFT_CHECK(to.add_end(options, over(options.provider, options)));
  const std::string first = to.endpoints.front().provider;
  if (options.provider != "auto" || is_over_tcp(first)) return {};
  if (const Status also = to.add_end(options, over("auto-tcp", options)); !also.ok())
    log_warning("nodes without provider {} cannot reach this node: {}", first, also.error().message);
  return {};
}

}  // namespace

Status check_cluster_key(const std::string& key_file) {
  WEFT_CHECK(net::read_key_ring(key_file));
  return {};
}

Result<std::unique_ptr<Exchange>> Exchange::open(const ExchangeOptions& options) {
  WEFT_TRY(net::KeyRing ring, net::read_key_ring(options.key_file));
  if (options.node.empty() || options.node.size() > limits::kNodeIdMax)
    return Error{Errc::invalid, "a node's id: expected 1 to 64 bytes"};
  auto made = std::make_unique<Impl>(options.key_file, std::move(ring));
  if (options.transports.empty()) WEFT_CHECK(add_fabric_ends(*made, options));
  for (const MakeTransport& make : options.transports) WEFT_CHECK(made->add_end(options, make));
  return std::make_unique<Exchange>(std::move(made));
}

}  // namespace weft
