# The service of the image.
sleep 0.5
echo ready > /tmp/ready
exec "$@"
