// Serves the versions of a store to clients of a model hub: the handler of an HTTP server. Read only.
#pragma once

#include <memory>
#include <optional>

#include "base/log.h"
#include "base/worker.h"
#include "endpoint/hub_route.h"
#include "endpoint/served_store.h"
#include "endpoint/token_file.h"
#include "http/message.h"
#include "weft/bytes/cold.h"
#include "weft/programs/vfs.h"
#include "weft/store/store.h"

namespace weft {

// Any thread.
class HubEndpoint {
 public:
  // `cold` fetches manifests and bytes of other nodes. With a token, requests without it get 401. Without one,
  // requests whose host is neither localhost nor an address get 403. Both references outlive this, and this outlives
  // the server.
  HubEndpoint(Store& store, ColdReads& cold, std::optional<HubToken> token);

  // Answers a request. Waits for bytes of other nodes, until the client leaves.
  HttpReply reply(const HttpRequest& request);

 private:
  struct Asked;  // a request, with the version that it names
  std::optional<HttpReply> refusal_of(const HttpRequest& request) const;
  HttpReply routed(const HttpRequest& request);
  HttpReply answer(const HttpRequest& request, const HubRoute& route, const ModelRow& model);
  HttpReply failed(const HttpRequest& request, const Error& error);
  HttpReply no_entry(const Asked& asked, const Error& error);

  Result<HttpReply> info(const Asked& asked);
  Result<HttpReply> tree(const Asked& asked);
  Result<HttpReply> paths(const Asked& asked);
  Result<HttpReply> refs(const Asked& asked);
  Result<HttpReply> file(const Asked& asked);
  Result<HttpReply> bytes_of(const Asked& asked, const ServedEntry& entry, HttpReply reply, const HttpPart& part);

  Store& store_;
  const std::optional<HubToken> token_;
  const std::unique_ptr<Vfs> vfs_;
  const ServedStore served_;
  RareLines rare_;
  Worker trimming_;
};

}  // namespace weft
