// Operations in flight. The transport owns each operation, with its buffer, from before it is posted until its
// completion has been read or the endpoint is closed. So no memory is freed that libfabric may still write to.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <span>

#include "net/transport/domain.h"
#include "net/transport/landing.h"
#include "net/transport/read_outcome.h"
#include "weft/cluster/transport.h"

namespace weft::net {

// The number of a connection, never reused in one transport. 0: no connection.
using ConnectionId = std::uint32_t;

enum class OperationKind : std::uint8_t { receive, send, read };

struct Operation {
  explicit Operation(OperationKind what) : kind(what) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  fi_context2 context{};  // libfabric's while in flight; completions name its address
  const OperationKind kind;
  PeerId peer = 0;              // of a send or a read
  ConnectionId connection = 0;  // the operation's connection; 0 for a shared receive
};

// A message that is being received or sent.
struct MessageOperation final : Operation {
  MessageOperation(OperationKind what, MessageBuffer memory) : Operation(what), buffer(memory) {}
  const MessageBuffer buffer;
  std::size_t length = 0;  // of a message to send, in bytes
  std::uint32_t data = 0;  // sent along: the ConnectionId at the other end; 0: none
};

class FabricLanding final : public CountedLanding {
 public:
  FabricLanding(std::span<std::byte> memory, std::shared_ptr<const void> owner, Registration registration)
      : CountedLanding(memory, std::move(owner)), registration_(std::move(registration)) {}
  Registration& registration() { return registration_; }

 private:
  Registration registration_;
};

struct ReadOperation final : Operation {
  ReadOperation() : Operation(OperationKind::read) {}

  FabricLanding& landing() const { return static_cast<FabricLanding&>(*use); }

  LandingUse use;
  std::size_t at = 0;
  std::size_t length = 0;
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::shared_ptr<ReadOutcome> outcome = std::make_shared<ReadOutcome>();
};

}  // namespace weft::net
