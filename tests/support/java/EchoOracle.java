/** The smallest oracle: gives back what it hears. It shows that the harness itself works. */
public final class EchoOracle implements Harness.Service {

    @Override
    public byte[] call(String method, byte[] payload) {
        switch (method) {
            case "echo":
                return payload;
            case "fail":
                throw new IllegalStateException("asked to fail");
            default:
                throw new IllegalArgumentException("no such method: " + method);
        }
    }
}
